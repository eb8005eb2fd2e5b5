// A job of many runs whose spec is edited, whose pods are being created, gated or refused, and
// which is cancelled meanwhile.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

void gate(PodView& pod) {
  pod.gates = "example.com/quota";
  pod.node_name.clear();
  pod.phase = PodPhase::kPending;
  pod.containers[0].started = false;
  pod.containers[0].started_at.reset();
}

// Two of ten runs are open, and both are gated since `since`.
JobView gated_job(Time since) {
  JobView view = job_of_runs(10, 2, 2);
  for (PodView& pod : view.pods) gate(pod);
  view.job.spec.active_deadline = seconds(3600);
  view.job.status.waiting = Waiting{Reason::kPodGated, "m", "n", std::nullopt, since};
  view.observed.since_write = seconds(60);
  return view;
}

TEST(ManyGated, ARunThatOpensBesideAGatedOneStartsTheClockAndTheGatedTimeCountsOnce) {
  JobView view = gated_job(now() - seconds(60));
  end_pod(view, 1, 0);
  view.pods.back().placed = now() - seconds(30);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.suspended, seconds(30)) << "until the pod of run 1 was bound";
  EXPECT_NE(view.job.status.waiting->reason, Reason::kPodGated) << "the new run works";
  add_pod(view, view.job.status.attempt, PodPhase::kRunning);
  const Status later = after(view, now() + seconds(600));
  EXPECT_EQ(later.suspended, seconds(30));
}

TEST(ManyGated, ARunWithoutWordsYetIsNotGated) {
  JobView view = job_of_runs(10, 2, 2);
  gate(view.pods[0]);
  view.pods[1].containers[0].started_at = now() - seconds(1);  // too short to be reported
  view.observed.since_write = seconds(60);
  for (const WriteStatus& write : all<WriteStatus>(settle(view))) {
    EXPECT_NE(write.status.waiting->reason, Reason::kPodGated);
  }
}

TEST(ManyGated, AllAreGatedUntilOneIsNot) {
  JobView view = job_of_runs(10, 2, 2);
  for (PodView& pod : view.pods) gate(pod);
  view.observed.since_write = seconds(60);
  EXPECT_EQ(after(view).waiting->reason, Reason::kPodGated);
}

TEST(ManyEdits, AShorterBackOffHoldsForAWaitingRunAlsoBesideOpenOnes) {
  JobView view = job_of_runs(3, 3, 3);
  view.job.status.runs[1].next_attempt_time = now() + std::chrono::hours(20);
  view.pods.erase(view.pods.begin() + 1);
  view.job.spec.retry_backoff.max = seconds(10);
  const Status status = after(view);
  EXPECT_EQ(status.runs[1].next_attempt_time, now() + seconds(10));
  view.job.status = status;
  EXPECT_TRUE(run_at(after(view, now() + seconds(11)), 1)->open());
}

TEST(ManyEdits,
     ALoweredDisruptionLimitFailsTheJobForAWaitingRunAtOnceAndForAnOpenOneAtItsNextLoss) {
  JobView view = job_of_runs(10, 3, 3);
  view.job.spec.disruption_limit = 2;
  view.job.status.disruptions = 3;
  view.job.status.runs[1].disruptions = 3;
  end_pod(view, 0, 0);
  const Status goes_on = after(view);
  EXPECT_FALSE(goes_on.condition("FailureTarget")) << "run 1 is open, and had no further loss";
  EXPECT_EQ(goes_on.attempt, 4) << "and the next run opens";
  view.job.status = goes_on;
  view.job.status.runs[0].next_attempt_time = now() + seconds(30);  // run 1 waits
  EXPECT_TRUE(has_condition(after(view), "FailureTarget", "DisruptionLimitExceeded"));
}

TEST(ManyEdits, AShorterBackOffOfAJobWithoutOpenRunsCostsOneWrite) {
  JobView view = job_in(Phase::kBackoff);
  view.job.status.runs[0].next_attempt_time = now() + std::chrono::hours(20);
  view.job.spec.retry_backoff.max = seconds(10);
  view.observed.since_write = seconds(60);
  EXPECT_EQ(only(all<WriteStatus>(settle(view))).status.runs[0].next_attempt_time,
            now() + seconds(10));
}

TEST(ManyEdits, ALoweredLimitOfTheWholeJobHoldsAtOnce) {
  JobView failures = job_of_runs(10, 2, 2);
  failures.job.spec.backoff_limit = 2;
  failures.job.status.failures = 3;
  EXPECT_TRUE(has_condition(after(failures), "FailureTarget", "BackoffLimitExceeded"));
  JobView indexes = job_of_runs(10, 2, 2);
  indexes.job.spec.backoff_limit_per_index = 0;
  indexes.job.spec.max_failed_indexes = 1;
  indexes.job.status.failed = *IndexSet::parse("7,8", 9);
  EXPECT_TRUE(has_condition(after(indexes), "FailureTarget", "MaxFailedIndexesExceeded"));
}

TEST(ManyEdits, ACancelWinsWhateverTheOrderOfIndexes) {
  for (const std::int64_t failed : {0, 1}) {
    JobView view = job_of_runs(2, 2, 2);
    view.job.spec.backoff_limit = 0;
    view.job.spec.cancel = true;
    end_pod(view, failed, 1);
    EXPECT_EQ(after(view).phase, Phase::kCancelling) << failed;
  }
}

TEST(ManyEdits, ARunThatIsCancelledHasNotFailed) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.spec.backoff_limit_per_index = 3;
  view.job.spec.disruption_limit = 1;
  view.job.status.runs[1].disruptions = view.job.status.disruptions = 2;
  view.job.spec.cancel = true;
  EXPECT_TRUE(after(view).failed.empty());
}

TEST(ManyCreations, TheJobEndsOnceNoPodIsBeingCreated) {
  JobView view = job_of_runs(5, 3, 3);
  SuccessRule rule;
  rule.indexes = IndexSet::parse("0", 4);
  view.job.spec.success_policy = {rule};
  view.pods.clear();
  end_pod(view, 0, 0);
  view.job.status.runs.resize(2);
  view.job.status.runs[1].pod_uid.clear();
  view.job.status.runs[1].node_name.clear();
  view.runs.resize(2);
  create_pod_slowly(view, view.job.status.runs[1].attempt);
  view.job.status = after(view);
  EXPECT_FALSE(is_terminal(view.job.status.phase));
  EXPECT_TRUE(has_condition(view.job.status, "SuccessCriteriaMet", "SuccessPolicy"));
  EXPECT_FALSE(is_terminal(after(view).phase)) << "still";
  view.observed.creations.clear();
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(ManyCreations, ThePolicyFailedWaitsForAPodThatIsBeingCreated) {
  JobView view = job_of_runs(1, 1, 1);
  view.job.spec.completions = 2;
  view.job.status.completed = *IndexSet::parse("1", 1);
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.status.runs[0].next_attempt_time = now() - seconds(1);
  view.job.status.phase = Phase::kBackoff;
  view.pods.clear();
  view.runs.resize(1);
  create_pod_slowly(view, view.job.status.runs[0].attempt);
  EXPECT_EQ(after(view).attempt, 1);
  view.observed.creations.clear();
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(ManyCreations, ATemplateOfWhichPodsWereCreatedMeanwhileIsNotInvalid) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.status.runs[1].pod_uid.clear();
  view.job.status.runs[1].node_name.clear();
  view.job.status.runs[1].refused = "no";
  view.pods.resize(1);
  view.job.status.waiting =
      Waiting{Reason::kPodTemplateRefused, "no", "n", now() - seconds(1), now() - seconds(121)};
  view.runs.resize(2);
  view.runs[1].observed.own_intent = true;
  view.runs[1].observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kTemplateRefused, "no", seconds(5), 3};
  view.pods[0].created = now() - seconds(100);
  EXPECT_FALSE(after(view).condition("FailureTarget")) << "run 0 has such a pod";
  view.pods[0].created = now() - seconds(200);
  EXPECT_FALSE(after(view).condition("FailureTarget")) << "also if it is older than the refusal";
  view.job.status.runs[0].next_attempt_time = now() + seconds(9);
  EXPECT_TRUE(has_condition(after(view), "FailureTarget", "PodTemplateInvalid"));
}

TEST(ManyPaced, AStartTimeoutWaitsForItsWriteLikeAnyLoss) {
  JobView view = job_of_runs(300, 200, 200);
  view.job.stored_bytes = 512 * 1024;
  view.observed.since_write = std::chrono::milliseconds(500);
  view.observed.live_for = std::chrono::hours(1);
  for (PodView& pod : view.pods) {
    pod.phase = PodPhase::kPending;
    pod.containers[0].started = false;
    pod.containers[0].started_at.reset();
    pod.created = now() - std::chrono::hours(1);
    pod.placed = now() - std::chrono::hours(1);
  }
  for (auto& run : view.job.status.runs)
    run.start_time = now() - std::chrono::hours(1) + Duration(4711);  // an intent's
  const Status status = after(view);
  EXPECT_EQ(status.disruptions, 200);
  EXPECT_EQ(status.attempt, 400) << "all open together";
}

TEST(ManyPaced, ARefusedCreationIsRecordedAtOnceHoweverLargeTheStatus) {
  JobView view = job_of_runs(10, 4, 2);
  view.job.stored_bytes = 512 * 1024;
  view.observed.since_write = std::chrono::milliseconds(100);
  view.pods.resize(1);
  view.job.status.runs[1].pod_uid.clear();
  view.job.status.runs[1].node_name.clear();
  view.runs.resize(2);
  view.runs[1].observed.own_intent = true;
  view.runs[1].observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kRefused, "quota", seconds(5)};
  EXPECT_EQ(after(view).runs[1].refused, "quota") << "also beside runs that open";
}

TEST(ManyPaced, AWriteThatIsMadeAnywayBringsTheLastProgress) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.spec.heartbeat = Heartbeat{};
  view.runs.resize(2);
  auto& run = view.job.status.runs[1];
  run.progress = "1 %";
  LeaseView lease;
  lease.attempt = run.attempt;
  lease.holder = lease.granted = run.pod_name + "/" + run.pod_uid;
  lease.renewed = true;
  lease.progress_message = "42 %";
  view.runs[1].lease = lease;
  view.observed.since_write = seconds(2);
  end_pod(view, 0, 1);
  EXPECT_EQ(run_at(after(view), 1)->progress, "42 %");
}

// Its run 0 is left of five. The others were lost 60 times.
TEST(ManyEdits, OneRunLeftIsJudgedByItsOwnLosses) {
  JobView view = job_of_runs(5, 5, 5);
  for (auto& run : view.job.status.runs) run.next_attempt_time = now() - seconds(9);
  view.job.status.phase = Phase::kSuspended;
  view.job.status.disruptions = 60;
  view.job.status.runs[3].disruptions = 51;
  view.job.spec.disruption_limit = 50;
  view.job.spec.completions = view.job.spec.parallelism = 1;
  view.pods.clear();
  view.job.status = after(view);
  ASSERT_EQ(view.job.status.phase, Phase::kPending);
  ASSERT_EQ(after(view).phase, Phase::kRunning);
  view.job.status.runs[0].disruptions = 51;
  EXPECT_TRUE(has_condition(after(view), "Failed", "DisruptionLimitExceeded"));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
