// podFailurePolicy's action Defer: something outside is not ready, and the run asks again later.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr int kNotReady = 75;  // EX_TEMPFAIL

PolicyRule defers() {
  PolicyRule rule = on_exit_code(PolicyAction::kDefer, {kNotReady});
  rule.defer_for = seconds(90);
  rule.defer_limit = 3;
  return rule;
}

JobView deferred_job() {
  JobView view = running_job();
  view.job.spec.pod_failure_policy = {defers()};
  view.job.status.runs[0].pod_uid = "pod-uid-1";
  add_ended_pod(view, 1, kNotReady);
  return view;
}

// The next attempt starts, and ends with this code. Its number is that of the job before, plus one.
void ends_again(JobView& view, int exit_code) {
  const auto due = view.job.status.runs[0].next_attempt_time;
  view.pods.clear();
  view.job.status = after(view, *due);
  add_ended_pod(view, view.job.status.attempt, exit_code);
  view.job.status.runs[0].pod_uid = view.pods[0].uid;
  view.job.status = after(view, now() + std::chrono::hours(1));
}

TEST(Deferral, CostsNoBudgetAndAsksAgainAfterTheRulesTime) {
  const JobView view = deferred_job();
  const Status status = after(view);
  EXPECT_EQ(status.failures + status.disruptions, 0);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.runs[0].next_attempt_time, now() + seconds(90)) << "without jitter";
  EXPECT_EQ(status.history.back().outcome, Outcome::kDeferred);
  EXPECT_EQ(status.waiting->reason, Reason::kDeferred);
  EXPECT_THAT(status.waiting->message,
              HasSubstr("attempt 1 was deferred, 1 times in a row since 20"));
  EXPECT_EQ(status.waiting->deadline, now() + seconds(90));
  EXPECT_TRUE(written(view).events.empty()) << "a job that polls says nothing";
}

TEST(Deferral, TheTimeMayBeLongerThanAnyBackOff) {
  JobView view = deferred_job();
  view.job.spec.pod_failure_policy[0].defer_for = seconds(86400);
  view.job.status = after(view);
  view.pods.clear();
  view.job.status = after(view, now() + seconds(10));
  EXPECT_EQ(after(view, now() + seconds(86399)).phase, Phase::kBackoff);
  EXPECT_EQ(after(view, now() + seconds(86400)).phase, Phase::kRunning);
}

TEST(Deferral, ThoseInARowShareAnEntryOfHistory) {
  JobView view = deferred_job();
  add_history(view, Outcome::kFailed, 2);
  view.job.status = after(view);
  const auto first_start = view.job.status.history.back().start_time;
  ends_again(view, kNotReady);
  const Status& status = view.job.status;
  ASSERT_EQ(status.history.size(), 3u);
  EXPECT_EQ(status.history.back().count, 2);
  EXPECT_EQ(status.history.back().attempt, 2) << "the last of them";
  EXPECT_EQ(status.history.back().start_time, first_start) << "since the first";
  EXPECT_EQ(status.runs[0].deferrals, 2);
  EXPECT_THAT(status.waiting->message,
              HasSubstr("2 times in a row since " + format_time(*first_start)));
}

TEST(Deferral, ThoseOfOneWriteTakeOnePlaceAndAllAreCounted) {
  JobView view = job_of_runs(100, 30, 30);
  view.job.spec.pod_failure_policy = {defers()};
  for (std::int64_t index = 0; index < 20; ++index) end_pod(view, index, kNotReady);
  for (std::int64_t index = 20; index < 30; ++index) end_pod(view, index, index == 25 ? 1 : 0);
  const Status status = after(view);
  const auto with = [&](Outcome outcome) {
    return std::find_if(status.history.begin(), status.history.end(),
                        [&](const auto& entry) { return entry.outcome == outcome; });
  };
  ASSERT_NE(with(Outcome::kDeferred), status.history.end());
  EXPECT_EQ(with(Outcome::kDeferred)->count, 20);
  ASSERT_NE(with(Outcome::kFailed), status.history.end());
  EXPECT_EQ(with(Outcome::kFailed)->index, 25);
  EXPECT_EQ(refused_by_api(view.job.status, status), "");
}

TEST(Deferral, WaitingSaysSoWhicheverOfTheRunsWasDeferredLast) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.spec.pod_failure_policy = {defers()};
  end_pod(view, 0, kNotReady);
  end_pod(view, 1, kNotReady);
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  EXPECT_EQ(after(view).waiting->reason, Reason::kDeferred);
}

TEST(Deferral, OneMoreThanTheLimitInARowFailsTheJob) {
  JobView view = deferred_job();
  view.job.status = after(view);
  ends_again(view, kNotReady);
  ends_again(view, kNotReady);
  EXPECT_FALSE(is_terminal(view.job.status.phase));
  ends_again(view, kNotReady);
  EXPECT_EQ(view.job.status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(view.job.status, "Failed", "DeferLimitExceeded"));
  EXPECT_EQ(view.job.status.failures, 0);
}

TEST(Deferral, AnotherEndBreaksTheRow) {
  JobView view = deferred_job();
  view.job.status = after(view);
  ends_again(view, kNotReady);
  ends_again(view, 1);
  EXPECT_EQ(view.job.status.runs[0].deferrals, 0);
  EXPECT_EQ(view.job.status.failures, 1);
  ends_again(view, kNotReady);
  EXPECT_EQ(view.job.status.runs[0].deferrals, 1);
  EXPECT_EQ(view.job.status.history.size(), 3u);
}

TEST(Deferral, ManyEndsAfterOneLeaveTheNewestOtherEntryInHistory) {
  JobView view = job_of_runs(100, 20, 20);
  add_history(view, Outcome::kFailed, 1);
  view.job.status.history.back().attempt = 4711;
  add_history(view, Outcome::kDeferred, 1);
  for (std::int64_t index = 0; index < 20; ++index) end_pod(view, index, 0);
  const Status status = after(view);
  EXPECT_EQ(refused_by_api(view.job.status, status), "");
  EXPECT_EQ(status.history.front().attempt, 4711);
  view.job.spec.cancel = true;
  EXPECT_EQ(refused_by_api(view.job.status, after(view)), "");
}

TEST(Deferral, HoldsUpNoOtherRun) {
  JobView view = job_of_runs(4, 2, 2);
  view.job.spec.pod_failure_policy = {defers()};
  end_pod(view, 0, kNotReady);
  end_pod(view, 1, kNotReady);
  const Status status = after(view);
  EXPECT_EQ(status.attempt, 4) << "two others open";
  EXPECT_EQ(only(status.history).count, 2);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
