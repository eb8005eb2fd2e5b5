// How a job ends: what decides it, what is stopped for it, and when it is over.
#include "reconciler/job/judge.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

TEST(JobEnd, TheLastRunThatSucceedsEndsTheJobInTheSameWrite) {
  JobView view = job_of_runs(2, 2, 2);
  end_pod(view, 0, 0);
  end_pod(view, 1, 0);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_EQ(status.completed.text(), "0,1");
  EXPECT_TRUE(has_condition(status, "SuccessCriteriaMet", "CompletionsReached"));
  EXPECT_TRUE(has_condition(status, "Complete", "CompletionsReached"));
}

JobView with_policy(PolicyAction action) {
  JobView view = job_of_runs(5, 3, 3);
  view.job.spec.pod_failure_policy = {on_exit_code(action, {42})};
  view.job.spec.backoff_limit_per_index = 1;
  view.job.spec.backoff_limit = kCountLimit;
  end_pod(view, 1, 42);
  return view;
}

TEST(JobEnd, FailJobStopsTheOtherRunsAndFailsOnceTheirPodsAreDown) {
  JobView view = with_policy(PolicyAction::kFailJob);
  const Status stopping = after(view);
  EXPECT_EQ(stopping.phase, Phase::kBackoff);
  EXPECT_EQ(stopping.waiting->reason, "RunsStopped");
  EXPECT_TRUE(has_condition(stopping, "FailureTarget", "PodFailurePolicy"));
  EXPECT_EQ(stopping.failures, 1);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 2u);
  view.job.status = stopping;
  view.observed.cancelling_for = seconds(1);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).size() <= 1);
  EXPECT_EQ(after(view).phase, Phase::kBackoff) << "two pods still run";
  view.pods.clear();
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(status, "Failed", "PodFailurePolicy"));
}

TEST(JobEnd, APodThatOutlivesItsGraceIsGivenUp) {
  JobView view = with_policy(PolicyAction::kFailJob);
  view.job.status = after(view);
  for (PodView& pod : view.pods) {
    if (!pod.ended()) delete_pod(pod, seconds(30 + 41));
  }
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

TEST(JobEnd, AnEditedStatusThatIsSuspendedAndCompleteIsResumedFirst) {
  JobView view = job_of_runs(2, 1, 0);
  view.job.status.phase = Phase::kSuspended;
  view.job.status.completed = IndexSet::first(2);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(JobEnd, AnEditedStatusThatIsRunningWithoutARunWaitsForItsPods) {
  JobView view = job_of_runs(2, 1, 1);
  view.job.status.runs.clear();
  view.job.status.completed = IndexSet::first(2);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.waiting->reason, "RunsStopped");
  view.pods.clear();
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(JobEnd, AnEditedStatusThatIsRunningWithoutARunCanBeCancelled) {
  JobView view = job_of_runs(2, 1, 0);
  view.job.status.phase = Phase::kRunning;
  view.job.spec.cancel = true;
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kCancelling);
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(JobEnd, FailIndexEndsTheRunAndNotTheJob) {
  const Status status = after(with_policy(PolicyAction::kFailIndex));
  EXPECT_EQ(status.failed.text(), "1");
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.runs.size(), 3u) << "the next run opens";
}

TEST(JobEnd, IgnoreCostsNoBudget) {
  const Status status = after(with_policy(PolicyAction::kIgnore));
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(status.runs[1].failures, 0);
  EXPECT_TRUE(status.runs[1].next_attempt_time) << "and it is tried again";
}

TEST(JobEnd, WhatIsIgnoredBacksOffAlsoWhenHistoryIsFullOfOtherRuns) {
  JobView view = with_policy(PolicyAction::kIgnore);
  add_history(view, Outcome::kSucceeded, static_cast<int>(kHistoryLimit));
  view.job.spec.retry_backoff.jitter_percent = 0;
  auto& run = view.job.status.runs[1];
  run.attempts = 4;
  EXPECT_EQ(run_at(after(view), 1)->next_attempt_time, now() + seconds(80)) << "four were ignored";
  run.failures = 1;
  EXPECT_EQ(run_at(after(view), 1)->next_attempt_time, now() + seconds(40))
      << "one of them counted";
}

TEST(JobEnd, ARunThatSpendsItsOwnLimitHasFailedForGood) {
  JobView view = job_of_runs(3, 3, 3);
  view.job.spec.backoff_limit_per_index = 0;
  view.job.spec.backoff_limit = kCountLimit;
  end_pod(view, 2, 1);
  Status status = after(view);
  EXPECT_EQ(status.failed.text(), "2");
  EXPECT_EQ(status.phase, Phase::kRunning);
  end_pod(view, 0, 0);
  end_pod(view, 1, 0);
  status = after(view);
  EXPECT_EQ(status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(status, "Failed", "FailedIndexes"));
  EXPECT_EQ(status.completed.text(), "0,1");
}

TEST(JobEnd, MoreFailedIndexesThanAllowedEndTheJob) {
  JobView view = job_of_runs(5, 3, 3);
  view.job.spec.backoff_limit_per_index = 0;
  view.job.spec.backoff_limit = kCountLimit;
  view.job.spec.max_failed_indexes = 1;
  end_pod(view, 0, 1);
  EXPECT_FALSE(after(view).condition("FailureTarget"));
  end_pod(view, 1, 1);
  EXPECT_TRUE(has_condition(after(view), "FailureTarget", "MaxFailedIndexesExceeded"));
}

TEST(JobEnd, TheSuccessPolicyStopsTheOtherRunsAndSucceedsOnceTheyAreDown) {
  JobView view = job_of_runs(5, 3, 3);
  SuccessRule rule;
  rule.indexes = IndexSet::parse("0", 4);
  view.job.spec.success_policy = {rule};
  end_pod(view, 0, 0);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kBackoff);
  EXPECT_TRUE(has_condition(view.job.status, "SuccessCriteriaMet", "SuccessPolicy"));
  view.pods.clear();
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_TRUE(has_condition(status, "Complete", "SuccessPolicy"));
}

TEST(JobEnd, FailureBeatsSuccessInTheSameLook) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.spec.backoff_limit = 0;
  SuccessRule rule;
  rule.count = 1;
  view.job.spec.success_policy = {rule};
  end_pod(view, 0, 0);
  end_pod(view, 1, 1);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(status, "Failed", "BackoffLimitExceeded"));
}

TEST(JobEnd, NoRunOpensOnceTheBudgetIsSpent) {
  JobView view = job_of_runs(9, 3, 3);
  view.job.spec.backoff_limit = 1;
  end_pod(view, 0, 1);
  end_pod(view, 1, 1);
  const Status status = after(view);
  EXPECT_EQ(status.attempt, 3);
  EXPECT_TRUE(has_condition(status, "FailureTarget", "BackoffLimitExceeded"));
  EXPECT_EQ(status.failures, 2);
}

TEST(JobEnd, ARunThatIsLostTooOftenFailsTheJobAndOthersLossesDoNotCount) {
  JobView view = job_of_runs(9, 3, 3);
  view.job.spec.disruption_limit = 2;
  view.job.status.disruptions = 30;
  for (auto& run : view.job.status.runs) run.disruptions = 1;
  view.observed.nodes[kNode].silent_for = seconds(41);
  EXPECT_FALSE(after(view).condition("FailureTarget"));
  view.job.status.runs[2].disruptions = 2;
  const Status status = after(view);
  EXPECT_TRUE(has_condition(status, "Failed", "DisruptionLimitExceeded"));
  EXPECT_EQ(status.phase, Phase::kFailed) << "lost pods were given up: nobody waits for them";
}

TEST(JobEnd, ARunThatWaitsFailsAloneOnceItsLimitIsLoweredBelowWhatItHasSpent) {
  JobView view = job_of_runs(9, 3, 3);
  view.job.spec.backoff_limit_per_index = 1;
  auto& waits = view.job.status.runs[1];
  waits.disruptions = 3;
  waits.next_attempt_time = now() + seconds(100);
  view.job.spec.disruption_limit = 3;
  EXPECT_TRUE(after(view).failed.empty());
  view.job.spec.disruption_limit = 2;
  const Status status = after(view);
  EXPECT_TRUE(status.failed.contains(1));
  EXPECT_FALSE(status.condition("FailureTarget"));
  EXPECT_EQ(status.disruptions, view.job.status.disruptions);
  EXPECT_EQ(status.attempt, view.job.status.attempt + 1) << "another run opens in its place";
}

// A job that was paused or resumed is Pending although runs of it wait.
TEST(JobEnd, ALoweredLimitLeavesAPendingJobPendingWhateverTheOtherRunsWaitFor) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.status.phase = Phase::kPending;
  view.job.spec.backoff_limit_per_index = 1;
  view.job.spec.disruption_limit = 2;
  auto& runs = view.job.status.runs;
  runs[0].disruptions = 3;
  for (auto& run : runs) run.next_attempt_time = now() + seconds(100);
  view.pods.clear();
  const Status backoff = after(view);
  EXPECT_EQ(backoff.phase, Phase::kPending);
  EXPECT_TRUE(backoff.failed.contains(0));
  EXPECT_EQ(backoff.waiting->reason, Reason::kRetryBackoff);
  EXPECT_EQ(written(view).events.at(0).reason, "RunsFailed");

  for (auto& run : runs) run.next_attempt_time = now();
  view.observed.may_create = false;
  EXPECT_EQ(after(view).phase, Phase::kPending);
  EXPECT_TRUE(decide(view, now()).awaits_creation);

  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  add_pod(view, runs[1].attempt, PodPhase::kRunning);
  EXPECT_EQ(after(view).phase, Phase::kPending);
  EXPECT_EQ(after(view).waiting->reason, Reason::kOldPodNotEnded);
}

TEST(JobEnd, ALoweredLimitDoesNotFailAJobThatIsBeingCancelled) {
  JobView view = job_of_runs(3, 3, 3);
  view.job.spec.backoff_limit_per_index = 1;
  view.job.spec.max_failed_indexes = 0;
  view.job.spec.disruption_limit = 3;
  auto& waits = view.job.status.runs[0];
  waits.disruptions = 5;
  waits.next_attempt_time = now() + seconds(100);
  view.job.spec.cancel = true;
  end_pod(view, 2, 0);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kCancelling);
  EXPECT_TRUE(status.failed.empty());
}

TEST(JobEnd, ARunOfALoweredLimitThatIsOpenGoesOnAndHoldsUpNoOther) {
  JobView view = job_of_runs(9, 3, 3);
  view.job.spec.backoff_limit_per_index = 1;
  view.job.status.runs[1].disruptions = 3;
  view.job.spec.disruption_limit = 2;
  end_pod(view, 0, 0);
  const Status status = after(view);
  EXPECT_TRUE(status.failed.empty());
  EXPECT_EQ(status.runs.size(), 3u);
  EXPECT_EQ(status.attempt, view.job.status.attempt + 1);
}

// With limits of their own, runs fail alone.
TEST(JobEnd, ARunOfALoweredLimitThatWaitsDoesNotEndItsJob) {
  JobView view = job_of_runs(9, 3, 3);
  Spec& spec = view.job.spec;
  spec.disruption_limit = 2;
  auto& waits = view.job.status.runs[1];
  waits.disruptions = 3;
  waits.next_attempt_time = now();
  EXPECT_TRUE(spent_budget(spec, view.job.status)) << "the runs share the job's budget";
  spec.backoff_limit_per_index = 1;
  EXPECT_FALSE(spent_budget(spec, view.job.status));
}

TEST(JobEnd, TheEndOnRecordIsFollowedWhateverTheUserAsksThen) {
  JobView view = with_policy(PolicyAction::kFailJob);
  view.job.status = after(view);
  view.job.spec.cancel = true;
  view.job.spec.suspend = true;
  view.pods.clear();
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
