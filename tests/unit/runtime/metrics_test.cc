#include "operator/runtime/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// The value on the line of this series; none: there is no such line.
std::optional<double> sample(const std::string& text, const std::string& series) {
  const std::size_t at = ("\n" + text).find("\n" + series + " ");
  if (at == std::string::npos) return std::nullopt;
  return std::stod(text.substr(at + series.size() + 1));
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() { metrics_.name_api_server("10.0.0.1:6443"); }
  Metrics metrics_{16};
};

TEST_F(MetricsTest, EveryPromisedSeriesIsThereAtZeroFromTheStart) {
  const std::string text = metrics_.text();
  const std::string queue = "{controller=\"durablejob\",name=\"durablejob\"}";
  const std::string controller = "{controller=\"durablejob\"}";
  const std::vector<std::string> promised = {
      "controller_runtime_reconcile_total{controller=\"durablejob\",result=\"success\"}",
      "controller_runtime_reconcile_total{controller=\"durablejob\",result=\"error\"}",
      "controller_runtime_reconcile_total{controller=\"durablejob\",result=\"requeue\"}",
      "controller_runtime_reconcile_total{controller=\"durablejob\",result=\"requeue_after\"}",
      "controller_runtime_reconcile_errors_total" + controller,
      "controller_runtime_reconcile_panics_total" + controller,
      "controller_runtime_reconcile_time_seconds_count" + controller,
      "controller_runtime_active_workers" + controller,
      "workqueue_depth" + queue,
      "workqueue_adds_total" + queue,
      "workqueue_queue_duration_seconds_count" + queue,
      "workqueue_work_duration_seconds_count" + queue,
      "workqueue_unfinished_work_seconds" + queue,
      "workqueue_longest_running_processor_seconds" + queue,
      "workqueue_retries_total" + queue,
      "rest_client_requests_total{code=\"200\",host=\"10.0.0.1:6443\",method=\"GET\"}",
      "rest_client_requests_total{code=\"<error>\",host=\"10.0.0.1:6443\",method=\"PUT\"}",
      "rest_client_request_duration_seconds_count{host=\"10.0.0.1:6443\",verb=\"POST\"}",
      "holdfast_jobs{phase=\"New\"}",
      "holdfast_jobs{phase=\"Pending\"}",
      "holdfast_jobs{phase=\"Running\"}",
      "holdfast_jobs{phase=\"Backoff\"}",
      "holdfast_jobs{phase=\"Suspended\"}",
      "holdfast_jobs{phase=\"Cancelling\"}",
      "holdfast_jobs{phase=\"Succeeded\"}",
      "holdfast_jobs{phase=\"Failed\"}",
      "holdfast_jobs{phase=\"Cancelled\"}",
      "holdfast_fenced_outcomes_total{pod_phase=\"Succeeded\"}",
      "holdfast_fenced_outcomes_total{pod_phase=\"Failed\"}",
      "holdfast_oldest_overdue_seconds",
      "holdfast_events_dropped_total",
  };
  for (const std::string& series : promised) {
    ASSERT_TRUE(sample(text, series).has_value()) << series << " is missing in\n" << text;
    EXPECT_EQ(*sample(text, series), 0) << series;
  }
  for (const char* const outcome : {"Succeeded", "Failed", "Lost", "Hung", "StartTimeout",
                                    "DeadlineExceeded", "Suspended", "Cancelled"}) {
    EXPECT_EQ(sample(text, "holdfast_attempts_total{outcome=\"" + std::string(outcome) + "\"}"),
              0.0);
  }
  for (int each = 1; each <= static_cast<int>(reconciler::kLastOrphanClass); ++each) {
    const auto orphan_class = static_cast<reconciler::OrphanClass>(each);
    EXPECT_EQ(sample(text, "holdfast_recovery_seconds_count{class=\"" +
                               std::string(to_string(orphan_class)) + "\"}"),
              0.0);
  }
}

TEST_F(MetricsTest, TheProcessAndTheBuildReportAboutThemselves) {
  const std::string text = metrics_.text();
  EXPECT_GT(sample(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(sample(text, "process_virtual_memory_bytes"), 1e6);
  EXPECT_GT(sample(text, "process_start_time_seconds"), 1.6e9);
  EXPECT_GE(sample(text, "process_cpu_seconds_total"), 0.0);
  EXPECT_GE(sample(text, "process_open_fds"), 3.0);
  EXPECT_GE(sample(text, "process_max_fds"), 3.0);
  EXPECT_GE(sample(text, "process_threads"), 1.0);
  EXPECT_THAT(text, HasSubstr("holdfast_build_info{"));
  EXPECT_EQ(sample(text,
                   "controller_runtime_max_concurrent_reconciles"
                   "{controller=\"durablejob\"}"),
            16.0);
}

TEST_F(MetricsTest, EveryFamilyHasHelpAndType) {
  const std::string text = metrics_.text();
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.rfind("# TYPE ", 0) != 0) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_THAT(text, HasSubstr("# HELP " + name + " "));
  }
}

TEST_F(MetricsTest, AttemptsRecoveriesAndFencedOutcomesAreCounted) {
  metrics_.attempt_ended("team", "Lost");
  metrics_.attempt_ended("team", "Lost");
  metrics_.recovered("team", reconciler::OrphanClass::kNodeSilent, milliseconds(40'500));
  metrics_.fenced_outcome("Succeeded");
  const std::string text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_attempts_total{outcome=\"Lost\"}"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_recovery_seconds_count{class=\"node_silent\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_recovery_seconds_sum{class=\"node_silent\"}"), 40.5);
  EXPECT_EQ(sample(text, "holdfast_recovery_seconds_bucket{class=\"node_silent\",le=\"30\"}"), 0.0);
  EXPECT_EQ(sample(text, "holdfast_recovery_seconds_bucket{class=\"node_silent\",le=\"41\"}"), 1.0)
      << "the default bound, 40 s + 1 s, is a bucket's edge";
  EXPECT_EQ(sample(text, "holdfast_fenced_outcomes_total{pod_phase=\"Succeeded\"}"), 1.0);
}

TEST_F(MetricsTest, RequestsAreCountedByVerbAndCodeAndOneWithoutAnswerIsAnError) {
  const kube::RequestObserver observer = metrics_.request_observer();
  observer.on_request("PUT", 409, milliseconds(3));
  observer.on_request("PUT", 0, seconds(30));
  const std::string text = metrics_.text();
  const std::string host = "host=\"10.0.0.1:6443\"";
  EXPECT_EQ(sample(text, "rest_client_requests_total{code=\"409\"," + host + ",method=\"PUT\"}"),
            1.0);
  EXPECT_EQ(
      sample(text, "rest_client_requests_total{code=\"<error>\"," + host + ",method=\"PUT\"}"),
      1.0);
  EXPECT_EQ(sample(text, "rest_client_request_duration_seconds_count{" + host + ",verb=\"PUT\"}"),
            2.0);
}

TEST_F(MetricsTest, TheQueueAndItsWorkersAreCounted) {
  const controller::ReconcilePool::Metrics pool = metrics_.pool_metrics();
  pool.queue.on_add();
  pool.queue.on_retry();
  pool.queue.on_take(milliseconds(2));
  pool.queue.on_done(milliseconds(20));
  pool.on_active(3);
  pool.on_result("error", milliseconds(20));
  pool.on_result("success", milliseconds(20));
  pool.on_exception();
  const std::string text = metrics_.text();
  const std::string queue = "{controller=\"durablejob\",name=\"durablejob\"}";
  EXPECT_EQ(sample(text, "workqueue_adds_total" + queue), 1.0);
  EXPECT_EQ(sample(text, "workqueue_retries_total" + queue), 1.0);
  EXPECT_EQ(sample(text, "workqueue_queue_duration_seconds_count" + queue), 1.0);
  EXPECT_EQ(sample(text, "workqueue_work_duration_seconds_sum" + queue), 0.02);
  const std::string controller = "{controller=\"durablejob\"}";
  EXPECT_EQ(sample(text, "controller_runtime_active_workers" + controller), 3.0);
  EXPECT_EQ(sample(text, "controller_runtime_reconcile_errors_total" + controller), 1.0);
  EXPECT_EQ(sample(text, "controller_runtime_reconcile_time_seconds_count" + controller), 2.0);
  EXPECT_EQ(sample(text, "controller_runtime_reconcile_panics_total" + controller), 1.0);
}

TEST_F(MetricsTest, WhatStandsElsewhereIsAskedForAtTheScrape) {
  std::map<std::string, std::map<std::string, std::size_t>> jobs = {
      {"team", {{"Running", 1}, {"", 1}}}, {"web", {{"Running", 1}}}};
  std::uint64_t dropped = 4;
  metrics_.set_sources({
      .jobs = [&] { return jobs; },
      .oldest_overdue = [] { return Duration(seconds(7)); },
      .watches =
          [] {
            return std::map<std::string, Metrics::WatchState>{
                {"pods", {milliseconds(1500), true, 12, 1, true}}};
          },
      .ownership =
          [] {
            membership::OwnershipReport report;
            report.state = membership::MembershipState::kActing;
            report.renewal_age = milliseconds(500);
            report.members = {{"a", true, {}}, {"b", true, {}}, {"dead", false, {}}};
            report.shards = {{"a", "a", true, ""},
                             {"b", "b", false, ""},
                             {"dead", "a", false, ""},
                             {"", "b", false, ""}};
            return report;
          },
      .lacks_guard = [] { return true; },
      .events_dropped = [&] { return dropped; },
      .queue_depth = [] { return std::size_t{5}; },
      .unfinished_work = [] { return Duration(seconds(2)); },
      .longest_running = [] { return Duration(seconds(1)); },
      .queues = nullptr,
      .pools = nullptr,
      .rescues = nullptr,
      .notifications = nullptr,
  });
  std::string text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_jobs{phase=\"Running\"}"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_jobs{phase=\"New\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_oldest_overdue_seconds"), 7.0);
  EXPECT_EQ(sample(text, "holdfast_watch_quiet_seconds{kind=\"pods\"}"), 1.5);
  EXPECT_EQ(sample(text, "holdfast_watch_live{kind=\"pods\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_watch_closed_namespaces{kind=\"pods\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_watch_unselected{kind=\"pods\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_cache_objects{kind=\"pods\"}"), 12.0);
  EXPECT_EQ(sample(text, "holdfast_events_dropped_total"), 4.0);
  EXPECT_EQ(sample(text, "holdfast_member_acting"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_member_renewal_age_seconds"), 0.5);
  EXPECT_EQ(sample(text, "holdfast_members_alive"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_shards_held"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_shards_orphaned"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_guard_missing"), 1.0);

  jobs = {{"team", {{"Succeeded", 3}}}};
  dropped = 6;
  text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_jobs{phase=\"Running\"}"), 0.0)
      << "a phase that no job has any more falls to zero";
  EXPECT_EQ(sample(text, "holdfast_jobs{phase=\"Succeeded\"}"), 3.0);
  EXPECT_EQ(sample(text, "holdfast_events_dropped_total"), 6.0);
}

TEST_F(MetricsTest, RescuesAreCountedWithTheSilenceOfTheirNodes) {
  Metrics::Sources sources;
  sources.rescues = [] { return rescue::RescueController::Counts{.held = 3, .failing = 1}; };
  metrics_.set_sources(std::move(sources));
  EXPECT_EQ(sample(metrics_.text(), "holdfast_rescue_refusals_total{reason=\"Volumes\"}"), 0.0);
  metrics_.rescued("team", seconds(60));
  metrics_.rescue_refused("Volumes");
  const std::string text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_rescue_seconds_bucket{le=\"61\"}"), 1.0)
      << "the default bound, 60 s + 1 s, is a bucket's edge";
  EXPECT_EQ(sample(text, "holdfast_rescue_refusals_total{reason=\"Volumes\"}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_rescue_held"), 3.0);
  EXPECT_EQ(sample(text, "holdfast_rescue_failing"), 1.0);
}

TEST_F(MetricsTest, AQueueHasItsSeriesAsLongAsItIsThere) {
  std::vector<queues::QueueCount> queues = {
      {"team", "encode", 3, 5, seconds(90), milliseconds(500)}};
  Metrics::Sources sources;
  sources.queues = [&] { return queues; };
  metrics_.set_sources(sources);
  metrics_.admitted("team", "encode", seconds(2));
  const std::string labels = "{namespace=\"team\",queue=\"encode\"}";
  const std::string text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_queue_running" + labels), 3.0);
  EXPECT_EQ(sample(text, "holdfast_queue_waiting" + labels), 5.0);
  EXPECT_EQ(sample(text, "holdfast_queue_oldest_wait_seconds" + labels), 90.0);
  EXPECT_EQ(sample(text, "holdfast_queue_admission_lag_seconds" + labels), 0.5);
  EXPECT_EQ(sample(text, "holdfast_queue_admissions_total" + labels), 1.0);
  EXPECT_EQ(sample(text, "holdfast_queue_wait_seconds_sum" + labels), 2.0);
  queues.clear();
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("encode"))) << "series must not pile up";
}

TEST_F(MetricsTest, APoolHasItsSeriesAsLongAsThisReplicaWorksOnIt) {
  pools::PoolCount count;
  count.namespace_ = "team";
  count.name = "thumbnails";
  count.workers = {{"busy", 2}, {"draining", 1}};
  count.slots = 8;
  count.busy_slots = 5;
  count.waiting = 7;
  count.lag = milliseconds(20);
  std::vector<pools::PoolCount> pools = {count};
  Metrics::Sources sources;
  sources.pools = [&] { return pools; };
  metrics_.set_sources(std::move(sources));
  metrics_.slot_taken("team", "thumbnails", milliseconds(25));
  metrics_.handed_back("team", "thumbnails");
  metrics_.cut_off("team", "thumbnails", "Silent");
  const std::string text = metrics_.text();
  const std::string labels = "namespace=\"team\",pool=\"thumbnails\"";
  EXPECT_EQ(sample(text, "holdfast_pool_workers{" + labels + ",state=\"busy\"}"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_pool_workers{" + labels + ",state=\"idle\"}"), 0.0);
  EXPECT_EQ(sample(text, "holdfast_pool_slots{" + labels + "}"), 8.0);
  EXPECT_EQ(sample(text, "holdfast_pool_slots_busy{" + labels + "}"), 5.0);
  EXPECT_EQ(sample(text, "holdfast_pool_waiting{" + labels + "}"), 7.0);
  EXPECT_EQ(sample(text, "holdfast_pool_free_slot_wait_seconds{" + labels + "}"), 0.02);
  EXPECT_EQ(sample(text, "holdfast_pool_start_wait_seconds_sum{" + labels + "}"), 0.025);
  EXPECT_EQ(sample(text, "holdfast_pool_handbacks_total{" + labels + "}"), 1.0);
  EXPECT_EQ(sample(text, "holdfast_pool_cut_offs_total{" + labels + ",reason=\"Silent\"}"), 1.0);
  pools.clear();
  EXPECT_EQ(metrics_.text().find("thumbnails"), std::string::npos);
}

// A tenant may make any number of queues.
TEST_F(MetricsTest, TheQueuesBeyondAHundredOfANamespaceShareASeries) {
  std::vector<queues::QueueCount> queues;
  for (int i = 0; i < 103; ++i) {
    queues.push_back({"team", "q" + std::to_string(i), 2, 1, seconds(i), seconds(0)});
  }
  queues.push_back({"other", "encode", 1, 0, seconds(0), seconds(0)});
  Metrics::Sources sources;
  sources.queues = [&] { return queues; };
  metrics_.set_sources(sources);
  metrics_.text();
  metrics_.admitted("team", "q102", seconds(2));
  const std::string text = metrics_.text();
  const std::string others = "{namespace=\"team\",queue=\"(others)\"}";
  EXPECT_EQ(sample(text, "holdfast_queue_running" + others), 6.0);
  EXPECT_EQ(sample(text, "holdfast_queue_oldest_wait_seconds" + others), 102.0);
  EXPECT_EQ(sample(text, "holdfast_queue_admissions_total" + others), 1.0);
  EXPECT_EQ(sample(text, "holdfast_queue_running{namespace=\"team\",queue=\"q99\"}"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_queue_running{namespace=\"other\",queue=\"encode\"}"), 1.0);
  EXPECT_THAT(text, Not(HasSubstr("q100\"")));
}

TEST_F(MetricsTest, TargetsThatTheConfigurationDoesNotHaveShareASeries) {
  metrics_.name_targets({"chat"});
  const std::string dropped = "holdfast_notifications_dropped_total";
  EXPECT_EQ(sample(metrics_.text(), dropped + "{target=\"chat\"}"), 0.0);
  for (const char* const target : {"chat", "stranger", "other"})
    metrics_.notification_dropped(target);
  const std::string text = metrics_.text();
  EXPECT_EQ(sample(text, dropped + "{target=\"chat\"}"), 1.0);
  EXPECT_EQ(sample(text, dropped + "{target=\"(others)\"}"), 2.0);
  EXPECT_THAT(text, Not(HasSubstr("stranger")));
}

TEST_F(MetricsTest, AQueueThatComesTakesThePlaceOfOneThatHasGone) {
  std::vector<queues::QueueCount> queues;
  for (int i = 0; i < 101; ++i) {
    queues.push_back({"team", "q" + std::to_string(i), 1, 1, seconds(i), seconds(0)});
  }
  Metrics::Sources sources;
  sources.queues = [&] { return queues; };
  metrics_.set_sources(sources);
  EXPECT_THAT(metrics_.text(), HasSubstr("(others)"));
  queues.erase(queues.begin());
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("q100\""));
  EXPECT_THAT(text, Not(HasSubstr("q0\"")));
  EXPECT_THAT(text, Not(HasSubstr("(others)")));
}

using Jobs = std::map<std::string, std::map<std::string, std::size_t>>;

TEST_F(MetricsTest, ANamespaceSeesItsOwnJobs) {
  Jobs jobs = {{"team", {{"Running", 2}, {"Failed", 1}, {"", 1}}}};
  Metrics::Sources sources;
  sources.jobs = [&] { return jobs; };
  metrics_.set_sources(sources);
  std::string text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_namespace_jobs{namespace=\"team\",phase=\"Running\"}"), 2.0);
  EXPECT_EQ(sample(text, "holdfast_namespace_jobs{namespace=\"team\",phase=\"New\"}"), 1.0);
  const std::string failed =
      "holdfast_namespace_jobs_ended_total{namespace=\"team\",phase=\"Failed\"}";
  EXPECT_EQ(sample(text, failed), 0.0) << "from the first scrape on";
  metrics_.job_started("team", seconds(3));
  metrics_.job_ended("team", "Failed", seconds(61));
  metrics_.job_ended("team", "Cancelled", std::nullopt);
  metrics_.attempt_ended("team", "Lost");
  metrics_.recovered("team", reconciler::OrphanClass::kNodeSilent, seconds(41));
  text = metrics_.text();
  const std::string team = "{namespace=\"team\"}";
  EXPECT_EQ(sample(text, failed), 1.0);
  EXPECT_EQ(sample(text, "holdfast_namespace_job_wait_seconds_sum" + team), 3.0);
  EXPECT_EQ(sample(text, "holdfast_namespace_job_duration_seconds_sum" + team), 61.0);
  EXPECT_EQ(sample(text, "holdfast_namespace_job_duration_seconds_count" + team), 1.0);
  EXPECT_EQ(sample(text, "holdfast_namespace_attempts_total{namespace=\"team\",outcome=\"Lost\"}"),
            1.0);
  EXPECT_EQ(
      sample(text, "holdfast_namespace_recoveries_total{class=\"node_silent\",namespace=\"team\"}"),
      1.0);
  jobs.clear();
  text = metrics_.text();
  EXPECT_EQ(sample(text, "holdfast_namespace_jobs{namespace=\"team\",phase=\"Running\"}"), 0.0);
  EXPECT_EQ(sample(text, failed), 1.0) << "a counter stays";
}

std::string of(int number) { return "n" + std::to_string(number); }

TEST_F(MetricsTest, TheNamespacesBeyondAHundredShareASeries) {
  Jobs jobs;
  for (int i = 100; i < 200; ++i) jobs[of(i)] = {{"Running", 1}};
  Metrics::Sources sources;
  sources.jobs = [&] { return jobs; };
  metrics_.set_sources(sources);
  metrics_.text();
  for (int i = 200; i < 203; ++i) jobs[of(i)] = {{"Running", 2}};
  metrics_.attempt_ended(of(202), "Failed");
  metrics_.attempt_ended(of(199), "Failed");
  const std::string text = metrics_.text();
  const auto running = [&](const std::string& namespace_) {
    return sample(text,
                  "holdfast_namespace_jobs{namespace=\"" + namespace_ + "\",phase=\"Running\"}");
  };
  EXPECT_EQ(running("n199"), 1.0);
  EXPECT_EQ(running("(others)"), 6.0);
  EXPECT_FALSE(running("n200"));
  EXPECT_EQ(
      sample(text, "holdfast_namespace_attempts_total{namespace=\"(others)\",outcome=\"Failed\"}"),
      1.0);
}

TEST_F(MetricsTest, ANamespaceWithoutJobsMakesRoomForAnother) {
  Jobs jobs;
  for (int i = 100; i < 200; ++i) jobs[of(i)] = {{"Running", 1}};
  Metrics::Sources sources;
  sources.jobs = [&] { return jobs; };
  metrics_.set_sources(sources);
  metrics_.text();
  jobs.erase("n150");
  EXPECT_THAT(metrics_.text(), HasSubstr("\"n150\"")) << "nobody needs its place";
  jobs["n200"] = {{"Running", 1}};
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("\"n200\""));
  EXPECT_THAT(text, Not(HasSubstr("\"n150\"")));
  EXPECT_THAT(text, Not(HasSubstr("(others)")));
}

TEST_F(MetricsTest, NoSeriesIsNamedByAJob) {
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("job=\"")));
}

}  // namespace
}  // namespace holdfast::runtime
