// What an operator still does for jobs that it does not watch any more, over a simulated API
// server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/jobs/left_jobs.h"
#include "reconciler/shards.h"
#include "tests/unit/pools/operator_world.h"

namespace holdfast::jobs::testing {
namespace {

using namespace pools::testing;  // NOLINT: the world of a whole operator
using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;

const std::string kTheirs = "/apis/holdfast.dev/v1alpha1/namespaces/theirs/durablejobs";
constexpr const char* kQueues = "/apis/holdfast.dev/v1alpha1/namespaces/default/jobqueues";

class SettledJobsTest : public ::testing::Test {
 protected:
  SettledJobsTest() {
    world_.create("/api/v1/nodes", {{"metadata", {{"name", "node-1"}}}});
    world_.before = [this](const ApiRequest& request) -> std::optional<ApiAnswer> {
      const bool is_job = request.target.starts_with(std::string(kJobs) + "/");
      if (is_job && request.method == "GET") reads_.push_back(request.target);
      return refuse_ ? refuse_(request) : std::nullopt;
    };
  }
  void job(const std::string& name, const Json& more = Json::object()) {
    world_.create(kJobs, durable_job(name, more));
  }
  // One that the operator runs.
  void batch_job(const std::string& name) {
    world_.batch_jobs = true;
    world_.create(
        kBatchJobs,
        {{"apiVersion", "batch/v1"},
         {"kind", "Job"},
         {"metadata", {{"name", name}}},
         {"spec",
          {{"managedBy", "holdfast.dev/operator"},
           {"template",
            {{"spec",
              {{"restartPolicy", "Never"},
               {"containers",
                Json::array({{{"name", "main"}, {"image", "x"}, {"command", {"/w"}}}})}}}}}}}});
  }
  Json status(const std::string& name) const {
    return at(world_.find("durablejobs", name), "status");
  }
  bool is_settled(const std::string& name) const { return bool_at(status(name), "settled"); }
  void start() {
    world_.start();
    world_.run(seconds(20));  // an earlier process's Leases run out
  }
  // The job's only pod ends.
  void succeed() {
    ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
    const std::string pod = path_of(world_.all("pods").at(0));
    world_.create(pod + "/binding", {{"target", {{"name", "node-1"}}}});
    world_.patch(pod + "/status", {{"status", {{"phase", "Succeeded"}}}});
  }
  // The operator runs the job "a" until nothing of it is left to do.
  void settle() {
    start();
    succeed();
    ASSERT_TRUE(world_.run_until([&] { return is_settled("a") && !is_held(); }, seconds(10)));
  }
  void expire() {
    world_.patch(std::string(kJobs) + "/a", {{"spec", {{"ttlSecondsAfterFinished", 0}}}});
  }
  bool is_gone_within(Duration time) {
    return world_.run_until([&] { return world_.find("durablejobs", "a").is_null(); }, time);
  }
  static Json owned_by(const std::string& name, const std::string& uid) {
    return Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                         {"kind", "DurableJob"},
                         {"name", name},
                         {"uid", uid},
                         {"controller", true}}});
  }
  // The job has ended, as an operator would write it.
  void end_by_hand(const std::string& name, const std::string& phase, bool settled) {
    Json job = world_.find("durablejobs", name);
    Json status = {{"attempt", 0},
                   {"failures", 0},
                   {"disruptions", 0},
                   {"completions", "0/1"},
                   {"observedGeneration", 1}};
    status.update(at(job, "status").is_object() ? Json(at(job, "status")) : Json::object());
    for (const char* const field : {"waiting", "runs", "conditions"}) status.erase(field);
    status.update({{"phase", phase}, {"completionTime", "2020-01-01T00:00:00Z"}});
    if (settled) status["settled"] = true;
    job["status"] = status;
    world_.put(std::string(kJobs) + "/" + name + "/status", job);
  }
  // Another namespace's jobs: "job-0" and so on.
  void make_theirs(int count) {
    world_.create("/api/v1/namespaces", {{"metadata", {{"name", "theirs"}}}});
    for (int i = 0; i < count; ++i) {
      world_.create(kTheirs, durable_job("job-" + std::to_string(i), {{"suspend", true}}));
    }
  }
  void remove_theirs(int count) {
    for (int i = 0; i < count; ++i) world_.remove(kTheirs + "/job-" + std::to_string(i));
  }
  static std::optional<ApiAnswer> refuse_theirs(const ApiRequest& request, int& refused) {
    const bool is_read = request.method == "GET" && request.target.starts_with(kTheirs + "/");
    if (!is_read) return std::nullopt;
    ++refused;
    return ApiAnswer{503, "{}", 0};
  }
  bool is_held() const {
    for (const Json& pod : world_.all("pods")) {
      if (!at(at(pod, "metadata"), "finalizers").empty()) return true;
    }
    return false;
  }
  static bool releases(const ApiRequest& request) {
    return request.method == "PATCH" && request.target.starts_with(std::string(kPods) + "/");
  }

  OperatorWorld world_;
  std::function<std::optional<ApiAnswer>(const ApiRequest&)> refuse_;
  std::vector<std::string> reads_;  // of one job
};

TEST_F(SettledJobsTest, TheEndSettlesAJobAndItsPodIsReleasedWithoutARead) {
  job("a");
  start();
  succeed();
  ASSERT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(10)));
  EXPECT_TRUE(is_settled("a"));
  EXPECT_EQ(string_at(status("a"), "phase"), "Succeeded");
  world_.run(minutes(5));
  EXPECT_THAT(reads_, IsEmpty()) << "it left by the operator's own write";
}

TEST_F(SettledJobsTest, AfterARestartAPodThatIsHeldLeadsBackToItsJob) {
  job("a");
  start();
  refuse_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (!releases(request)) return std::nullopt;
    return ApiAnswer{503, "{}", 0};
  };
  succeed();
  ASSERT_TRUE(world_.run_until([&] { return is_settled("a"); }, seconds(10)));
  world_.stop();
  refuse_ = nullptr;
  ASSERT_TRUE(is_held());
  start();
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(60)));
  EXPECT_EQ(world_.all("pods").size(), 1u) << "an ended pod stays for its logs";
}

TEST_F(SettledJobsTest, AfterARestartAPodThatRunsLeadsBackToItsJob) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  world_.run(seconds(5));
  world_.stop();
  // Somebody settles it although its pod runs.
  end_by_hand("a", "Failed", /*settled=*/true);
  start();
  const auto is_stopped = [this] {
    const std::vector<Json> pods = world_.all("pods");
    return pods.empty() || at(at(pods[0], "metadata"), "deletionTimestamp").is_string();
  };
  EXPECT_TRUE(world_.run_until(is_stopped, seconds(60)));
}

TEST_F(SettledJobsTest, TheLeaseThatGoesWithAJobLeadsNowhere) {
  job("a");
  settle();
  const std::string uid = string_at(at(world_.find("durablejobs", "a"), "metadata"), "uid");
  world_.create(kLeases, {{"metadata",
                           {{"name", "holdfast-" + uid},
                            {"labels", {{"holdfast.dev/job-uid", uid}}},
                            {"ownerReferences", owned_by("a", uid)}}},
                          {"spec", {{"holderIdentity", "pod/uid"}}}});
  world_.run(seconds(5));
  world_.stop();
  start();
  world_.run(seconds(30));
  EXPECT_THAT(reads_, IsEmpty());
}

TEST_F(SettledJobsTest, APodOfAnotherJobOfItsNameCausesOneRead) {
  job("a");
  settle();
  world_.create(kPods,
                {{"metadata",
                  {{"name", "a-1-other"},
                   {"labels", {{"holdfast.dev/job-uid", "other"}}},
                   {"ownerReferences", owned_by("a", "other")}}},
                 {"spec", {{"containers", Json::array({{{"name", "main"}, {"image", "x"}}})}}}});
  world_.run(minutes(1));
  EXPECT_THAT(reads_.size(), ::testing::AllOf(::testing::Ge(1u), ::testing::Le(2u)));
}

TEST_F(SettledJobsTest, ItsTimeToLiveEndsInTime) {
  job("a", {{"ttlSecondsAfterFinished", 120}});
  start();
  succeed();
  ASSERT_TRUE(world_.run_until([&] { return is_settled("a"); }, seconds(10)));
  world_.run(seconds(110));
  EXPECT_FALSE(world_.find("durablejobs", "a").is_null());
  EXPECT_TRUE(is_gone_within(seconds(15)));
}

TEST_F(SettledJobsTest, AfterARestartTheWalkFindsWhoseTimeEnds) {
  job("a", {{"ttlSecondsAfterFinished", 3600}});
  settle();
  world_.stop();
  start();
  world_.run(minutes(58));
  EXPECT_FALSE(world_.find("durablejobs", "a").is_null());
  EXPECT_TRUE(is_gone_within(minutes(3)));
}

TEST_F(SettledJobsTest, AnEditOfAFinishedJobCountsWithTheNextWalk) {
  job("a");
  settle();
  world_.run(minutes(2));
  expire();
  EXPECT_TRUE(is_gone_within(minutes(11)));
}

TEST_F(SettledJobsTest, TheWalkRecordsThatAFinishedJobWasEdited) {
  job("a");
  settle();
  world_.run(minutes(2));
  world_.patch(std::string(kJobs) + "/a", {{"spec", {{"ttlSecondsAfterFinished", 86400}}}});
  EXPECT_TRUE(world_.run_until(
      [&] {
        return int_at(status("a"), "observedGeneration") ==
               int_at(at(world_.find("durablejobs", "a"), "metadata"), "generation");
      },
      minutes(11)));
}

TEST_F(SettledJobsTest, ADeletedJobThatRunsIsReadOnceAndItsPodIsReleased) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  world_.run(seconds(1));
  reads_.clear();
  world_.remove(std::string(kJobs) + "/a");
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(10)));
  EXPECT_FALSE(reads_.empty()) << "only a read says that it is gone";
}

TEST_F(SettledJobsTest, WhileTheReadFailsNothingIsTakenForDeleted) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  refuse_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_read =
        request.method == "GET" && request.target.starts_with(std::string(kJobs) + "/");
    return is_read ? std::optional(ApiAnswer{503, "{}", 0}) : std::nullopt;
  };
  world_.remove(std::string(kJobs) + "/a");
  world_.run(seconds(30));
  EXPECT_TRUE(is_held());
  refuse_ = nullptr;
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(10)));
}

TEST_F(SettledJobsTest, ANamespaceThatMayNotBeReadHoldsUpTheWalkOfNoOther) {
  world_.namespaces = {"a-gone", "default"};
  int refused = 0;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_walk = request.target.find("/a-gone/durablejobs") != std::string::npos &&
                         request.target.find("settled=true") != std::string::npos;
    refused += is_walk ? 1 : 0;
    return is_walk ? std::optional(ApiAnswer{403, "{}", 0}) : std::nullopt;
  };
  job("a");
  settle();
  world_.run(minutes(2));
  expire();
  EXPECT_TRUE(is_gone_within(minutes(11)));
  EXPECT_GT(refused, 0);
  refuse_ = nullptr;
}

TEST_F(SettledJobsTest, FinishedJobsCountUntilTheirNamespaceIsGone) {
  world_.namespaces = {"default"};
  job("a");
  settle();
  world_.run(minutes(12));
  ASSERT_EQ(world_.counted("default", "Succeeded"), 1u);
  bool is_gone = false;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (is_gone && request.target == "/api/v1/namespaces/default") return ApiAnswer{404, "{}", 0};
    const bool is_walk = request.target.find("settled=true") != std::string::npos;
    return is_walk ? std::optional(ApiAnswer{403, "{}", 0}) : std::nullopt;
  };
  world_.run(minutes(12));
  EXPECT_EQ(world_.counted("default", "Succeeded"), 1u) << "the right to read it is gone";
  is_gone = true;
  world_.run(minutes(12));
  EXPECT_EQ(world_.counted("default", "Succeeded"), 0u);
  refuse_ = nullptr;
}

// The rules of a server that starts may not be there yet.
TEST_F(SettledJobsTest, AWalkOverAllNamespacesThatIsRefusedGoesOnSoon) {
  bool is_over = false;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_walk = request.target.find("settled=true") != std::string::npos;
    return is_walk && !is_over ? std::optional(ApiAnswer{403, "{}", 0}) : std::nullopt;
  };
  job("a");
  settle();
  world_.run(minutes(2));
  expire();
  is_over = true;
  EXPECT_TRUE(is_gone_within(minutes(1)));
  refuse_ = nullptr;
}

// A finalizer that is not ours may hold it for long.
TEST_F(SettledJobsTest, ASettledJobThatGoesIsNotAskedForAgainAndAgain) {
  job("a");
  settle();
  const std::string path = std::string(kJobs) + "/a";
  world_.patch(path, {{"metadata", {{"finalizers", {"example.com/theirs"}}}},
                      {"spec", {{"ttlSecondsAfterFinished", 86400}}}});
  world_.remove(path);
  world_.run(minutes(11));
  world_.patch(path, {{"metadata", {{"finalizers", Json::array()}}}});
  ASSERT_TRUE(world_.find("durablejobs", "a").is_null());
  world_.collect_garbage();
  reads_.clear();
  world_.run(minutes(5));
  EXPECT_LE(reads_.size(), 3u);
}

// Its Role goes before its last objects.
TEST_F(SettledJobsTest, AJobOfANamespaceThatIsGoneIsGone) {
  world_.namespaces = {"default"};
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  refuse_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.target == "/api/v1/namespaces/default") {
      return ApiAnswer{404, R"({"kind": "Status", "reason": "NotFound"})", 0};
    }
    const bool is_of_job = request.target.starts_with(std::string(kJobs) + "/");
    return is_of_job ? std::optional(ApiAnswer{403, "{}", 0}) : std::nullopt;
  };
  world_.remove(std::string(kJobs) + "/a");
  world_.run(seconds(30));
  reads_.clear();
  world_.run(minutes(1));
  EXPECT_LE(reads_.size(), 10u)
      << "the pod that is left here leads back, and waits longer each time";
}

// It has no right to read one. An API server that has just started refuses what it grants, too.
TEST_F(SettledJobsTest, ARefusedReadOfAnOperatorOfAllNamespacesAsksForNoNamespace) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  int refused = 0;
  int asked = 0;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    asked += request.target == "/api/v1/namespaces/default" ? 1 : 0;
    if (!request.target.starts_with(std::string(kJobs) + "/")) return std::nullopt;
    ++refused;
    return ApiAnswer{403, "{}", 0};
  };
  world_.remove(std::string(kJobs) + "/a");
  world_.run(seconds(30));
  refuse_ = nullptr;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, minutes(1)));
}

// One tenant's 500 jobs that went, and that nobody may read, cost a bounded number of requests, and
// another tenant's job is read in its turn.
TEST_F(SettledJobsTest, JobsThatMayNotBeReadCostFewRequestsAndHoldUpNoOtherNamespace) {
  make_theirs(500);
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  int refused = 0;
  refuse_ = [&](const ApiRequest& request) { return refuse_theirs(request, refused); };
  remove_theirs(500);
  world_.remove(std::string(kJobs) + "/a");
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(1)));
  world_.run(seconds(10));
  EXPECT_GE(refused, 500);
  EXPECT_LE(refused, 500 + 200 + 11 * LeftJobs::kRetriesPerSecond);
  refuse_ = nullptr;
}

TEST_F(SettledJobsTest, HoweverManyReadsFailEachIsRepeatedWithinHalfAMinute) {
  make_theirs(4'000);
  start();
  ASSERT_EQ(world_.counted("theirs", "Suspended"), 4'000u);
  int refused = 0;
  refuse_ = [&](const ApiRequest& request) { return refuse_theirs(request, refused); };
  remove_theirs(4'000);
  world_.run(seconds(3));
  ASSERT_GE(refused, 4'000);
  refuse_ = nullptr;
  world_.run(LeftJobs::kLongestRetry);
  EXPECT_EQ(world_.counted("theirs", "Suspended"), 0u);
}

TEST_F(SettledJobsTest, ALeaseOfAFinishedJobMakesNoWorkWithoutAnEnd) {
  job("a");
  settle();
  const std::string uid = string_at(at(world_.find("durablejobs", "a"), "metadata"), "uid");
  world_.create(kLeases, {{"metadata",
                           {{"name", "holdfast-" + uid + "-0"},
                            {"labels", {{"holdfast.dev/job-uid", uid}}},
                            {"ownerReferences", owned_by("a", uid)}}}});
  world_.run(seconds(20));
  reads_.clear();
  world_.run(minutes(1));
  EXPECT_LE(reads_.size(), 3u);
}

TEST_F(SettledJobsTest, FinishedJobsOfAnEarlierVersionAreSettledAFewInASecond) {
  for (int i = 0; i < 60; ++i) {
    job("old-" + std::to_string(i), {{"cancel", true}});
  }
  // An earlier version.
  world_.before = [this](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "PUT" || !request.target.ends_with("/status")) return std::nullopt;
    Json body = Json::parse(request.body);
    if (!bool_at(at(body, "status"), "settled")) return std::nullopt;
    body["status"].erase("settled");
    return ApiAnswer{200, world_.put(request.target, body).dump(), 0};
  };
  start();
  world_.run(minutes(11));
  world_.stop();
  world_.before = nullptr;
  const auto settled = [this] {
    int count = 0;
    for (const Json& one : world_.all("durablejobs"))
      count += bool_at(at(one, "status"), "settled");
    return count;
  };
  world_.start();
  ASSERT_TRUE(world_.run_until([&] { return settled() >= 20; }, seconds(20)));
  const int before = settled();
  world_.run(seconds(1));
  EXPECT_GE(settled() - before, 8);
  EXPECT_LE(settled() - before, 11);
  EXPECT_TRUE(world_.run_until([&] { return settled() == 60; }, seconds(5)));
}

// Notes the writes that end the batch/v1 Job "pi" and its DurableJob.
class MirroredEnds : public SettledJobsTest {
 protected:
  MirroredEnds() {
    refuse_ = [this](const ApiRequest& request) -> std::optional<ApiAnswer> {
      if (request.method != "PUT") return std::nullopt;
      const bool is_batch = request.target.starts_with(kBatchJobs);
      if (is_batch && (refuses_ || (forgets_ && has_uid(request.body))))
        return ApiAnswer{503, "{}", 0};
      const bool has_ended = request.body.find("\"Complete\"") != std::string::npos;
      const bool settles = request.body.find("\"settled\":true") != std::string::npos;
      if (has_ended) ends_.push_back(is_batch ? "its Job" : settles ? "settled" : "ended");
      return std::nullopt;
    };
    batch_job("pi");
  }
  ~MirroredEnds() override { refuse_ = nullptr; }
  bool has_uid(const std::string& text) const {
    const Json durable = world_.find("durablejobs", "pi");
    return !durable.is_null() &&
           text.find(string_at(at(durable, "metadata"), "uid")) != std::string::npos;
  }
  bool is_known() const { return has_uid(world_.find("jobs", "pi").dump()); }
  // The DurableJob ends, and its Job, which knows it, does not say so.
  void end_unreported() {
    start();
    ASSERT_TRUE(world_.run_until([&] { return is_known(); }, seconds(10)));
    refuses_ = true;
    succeed();
    ASSERT_TRUE(world_.run_until([&] { return is_settled("pi") && !is_held(); }, seconds(10)));
  }
  bool is_complete() const {
    return at(world_.find("jobs", "pi"), "status").dump().find("\"Complete\"") != std::string::npos;
  }

  bool refuses_ = false;  // all writes of the Job's status
  bool forgets_ = false;  // those with the DurableJob's UID
  std::vector<std::string> ends_;
};

TEST_F(MirroredEnds, TheEndSettlesTheDurableJobOfABatchJobThatKnowsIt) {
  end_unreported();
  world_.run(minutes(2));
  refuses_ = false;
  EXPECT_TRUE(world_.run_until([&] { return is_complete(); }, minutes(2)));
  EXPECT_EQ(ends_, (std::vector<std::string>{"settled", "its Job"}));
  EXPECT_EQ(reads_.size(), 0u) << "it stays in the cache until its Job reports the end";
}

TEST_F(MirroredEnds, TheDurableJobOfABatchJobThatDoesNotKnowItIsSettledAfterThatsEnd) {
  forgets_ = true;
  start();
  succeed();
  ASSERT_TRUE(world_.run_until([&] { return !ends_.empty() && !is_held(); }, seconds(10)));
  forgets_ = false;
  EXPECT_TRUE(world_.run_until([&] { return is_settled("pi"); }, minutes(2)));
  EXPECT_EQ(ends_, (std::vector<std::string>{"ended", "its Job", "settled"}));
}

TEST_F(MirroredEnds, AnEndThatWasSettledByAReplicaThatDiedIsMirrored) {
  end_unreported();
  world_.stop();
  refuses_ = false;
  start();
  EXPECT_TRUE(world_.run_until([&] { return is_complete(); }, seconds(3)))
      << "no watch has to show the DurableJob first";
}

TEST_F(SettledJobsTest, AnEndThatABatchJobDoesNotReportYetIsFoundAlthoughItIsSettled) {
  batch_job("pi");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  world_.run(seconds(5));
  world_.stop();
  end_by_hand("pi", "Failed", /*settled=*/true);
  start();
  EXPECT_TRUE(world_.run_until(
      [&] {
        return at(world_.find("jobs", "pi"), "status").dump().find("\"Failed\"") !=
               std::string::npos;
      },
      seconds(60)));
}

TEST_F(SettledJobsTest, NothingIsDecidedAboutAJobThatLeftUntilItIsRead) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  int writes = 0;
  bool is_away = true;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (!request.target.starts_with(std::string(kJobs) + "/a")) return std::nullopt;
    if (request.method == "PUT") ++writes;
    if (request.method != "GET" || !is_away) return std::nullopt;
    return ApiAnswer{.status = 503, .body = R"({"kind":"Status","code":503,"message":"later"})"};
  };
  end_by_hand("a", "Failed", /*settled=*/true);
  succeed();  // which the cached job would record
  world_.run(seconds(20));
  EXPECT_EQ(writes, 0);
  EXPECT_TRUE(is_held());
  is_away = false;
  EXPECT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(10)));
  EXPECT_EQ(writes, 0);
}

TEST_F(SettledJobsTest, TheFirstWriteOfAJobSaysItsShard) {
  world_.shards = 2;
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  const std::string shard = string_at(status("a"), "shard");
  EXPECT_THAT(shard, ::testing::EndsWith("-of-2"));
  EXPECT_EQ(string_at(at(at(world_.all("pods").at(0), "metadata"), "labels"), "holdfast.dev/shard"),
            shard);
}

TEST_F(SettledJobsTest, ARestoredStatusWithAShardThatIsNotItsQueuesIsCorrectedAndTheJobGoesOn) {
  world_.shards = 2;
  const int right = reconciler::shard_of("default", 2);
  world_.create(kQueues, {{"apiVersion", "holdfast.dev/v1alpha1"},
                          {"kind", "JobQueue"},
                          {"metadata", {{"name", "one"}}},
                          {"spec", {{"concurrency", 1}}}});
  job("a", {{"queue", {{"name", "one"}}}});
  Json restored = world_.find("durablejobs", "a");
  restored["status"] = {{"phase", "Pending"},
                        {"shard", reconciler::shard_label(1 - right, 2)},
                        {"waiting", {{"reason", "Queued"}, {"message", "m"}, {"nextAction", "n"}}}};
  world_.put(std::string(kJobs) + "/a/status", restored);
  start();
  EXPECT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(30)));
  EXPECT_EQ(string_at(status("a"), "shard"), reconciler::shard_label(right, 2));
}

TEST_F(SettledJobsTest, AnAPIServerThatCannotSelectChangesNothing) {
  refuse_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.target.find("fieldSelector=status.settled") == std::string::npos) {
      return std::nullopt;
    }
    return ApiAnswer{400,
                     R"({"kind":"Status","status":"Failure","reason":"BadRequest","code":400,)"
                     R"("message":"field label not supported: status.settled"})",
                     0};
  };
  job("a", {{"ttlSecondsAfterFinished", 60}});
  start();
  succeed();
  ASSERT_TRUE(world_.run_until([&] { return !is_held(); }, seconds(30)));
  EXPECT_TRUE(is_gone_within(seconds(70)));
}

// Its pods and their Leases are in the caches, and say its shard.
TEST_F(SettledJobsTest, NothingLeadsToAReadOfAJobBeforeTheJobsOfItsShardWereListed) {
  job("a", {{"heartbeat", {{"leaseDurationSeconds", 60}}}, {"completions", 2}, {"parallelism", 2}});
  start();
  ASSERT_TRUE(world_.run_until([&] { return world_.all("pods").size() == 2; }, seconds(10)));
  world_.run(seconds(5));
  ASSERT_THAT(world_.all("leases"), ::testing::Not(IsEmpty()));
  world_.stop();
  reads_.clear();
  refuse_ = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_of_shards = request.target.find("/durablejobs?") != std::string::npos &&
                              request.target.find("status.shard!=none") != std::string::npos;
    if (!is_of_shards) return std::nullopt;
    return ApiAnswer{503, R"({"kind":"Status","code":503,"message":"later"})", 0};
  };
  start();
  world_.run(seconds(30));
  EXPECT_THAT(reads_, IsEmpty());
  EXPECT_TRUE(is_held());
  EXPECT_EQ(world_.all("pods").size(), 2u);
}

TEST_F(SettledJobsTest, AnAPIServerThatKnowsSettledAloneCannotSelect) {
  int tries = 0;
  int halves = 0;
  refuse_ = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.target.find("status.settled") == std::string::npos) return std::nullopt;
    ++(request.target.find("status.shard") != std::string::npos ? tries : halves);
    return ApiAnswer{400,
                     R"({"kind":"Status","status":"Failure","reason":"BadRequest","code":400,)"
                     R"("message":"field label not supported: status.shard"})",
                     0};
  };
  job("a");
  start();
  world_.run(minutes(4));
  EXPECT_GE(tries, 4);
  EXPECT_EQ(halves, 0) << "it would take such a selector, and drop each shard that is written";
}

}  // namespace
}  // namespace holdfast::jobs::testing
