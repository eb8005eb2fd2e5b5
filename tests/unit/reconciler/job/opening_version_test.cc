// A job of a newer version of the operator: it gets no new attempt, and all else goes on.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr const char* kReason = "NotKnownToThisVersion";

JobView newer(JobView view) {
  view.job.unknown = "spec.gang";
  return view;
}

TEST(Version, AJobWithAnUnknownFieldGetsNoAttemptAndSaysWhy) {
  JobView view = newer(new_job());
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.phase, Phase::kPending);
  EXPECT_EQ(write.status.attempt, 0);
  EXPECT_EQ(write.status.waiting->reason, Reason::kNotKnownToThisVersion);
  EXPECT_THAT(write.status.waiting->message, HasSubstr("spec.gang"));
  EXPECT_TRUE(has_condition(write.status, "Stalled", kReason));
  EXPECT_TRUE(only(write.events).warning);
  EXPECT_EQ(write.events[0].reason, kReason);
  EXPECT_THAT(write.events[0].note, HasSubstr("spec.gang"));
  view.job.status = write.status;
  EXPECT_TRUE(settle(view).writes.empty()) << "it says so once";
}

TEST(Version, OnceTheFieldIsKnownTheJobStarts) {
  JobView view = newer(new_job());
  view.job.status = after(view);
  view.job.unknown.clear();
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_FALSE(status.holds("Stalled"));
}

TEST(Version, AnOpenAttemptGoesOnAndItsSuccessIsTheJobs) {
  JobView view = newer(running_job());
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_FALSE(after(view).holds("Stalled")) << "nothing is held back yet";
  view.pods.clear();
  add_ended_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
  (void)pod;
}

TEST(Version, AnAttemptThatEndsHasNoSuccessor) {
  JobView view = newer(running_job());
  add_ended_pod(view, 1, 1);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.history.size(), 1u);
  EXPECT_EQ(status.waiting->reason, Reason::kNotKnownToThisVersion);
  EXPECT_TRUE(has_condition(status, "Stalled", kReason));
  view.job.status = status;
  view.pods.clear();
  EXPECT_TRUE(all<CreatePod>(settle(view, now() + std::chrono::hours(9))).empty());
}

TEST(Version, ALostAttemptHasNoSuccessor) {
  JobView view = newer(running_job());
  PodView& pod = add_pod(view, 1, PodPhase::kFailed);
  pod.disruption_target = true;
  view.job.status.runs[0].pod_uid = pod.uid;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.disruptions, 1);
  EXPECT_EQ(status.attempt, 1);
}

TEST(Version, ItsBudgetsDeadlinesCancelAndDeletionWork) {
  JobView view = newer(running_job());
  view.job.spec.backoff_limit = 0;
  add_ended_pod(view, 1, 1);
  EXPECT_EQ(after(view).phase, Phase::kFailed);

  view = newer(job_in(Phase::kBackoff));
  view.job.spec.active_deadline = seconds(1);
  EXPECT_EQ(after(view).phase, Phase::kFailed);

  view = newer(job_in(Phase::kBackoff));
  view.job.spec.cancel = view.job.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelled);

  view = newer(running_job());
  add_pod(view, 1, PodPhase::kRunning);
  view.job.spec.cancel = view.job.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u);

  view = newer(job_in(Phase::kBackoff));
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).phase, Phase::kSuspended);

  view = newer(job_in(Phase::kSucceeded));
  view.job.spec.ttl_after_finished = seconds(0);
  EXPECT_EQ(all<DeleteJob>(settle(view)).size(), 1u);

  view = newer(running_job());
  view.job.deleting = true;
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.has_finalizer = true;
  EXPECT_EQ(all<ReleasePod>(settle(view)).size(), 1u);
}

TEST(Version, OfManyRunsTheOpenOnesGoOnAndNoOtherOpens) {
  JobView view = newer(job_of_runs(5, 3, 2));
  WriteStatus write = written(view);
  EXPECT_EQ(write.status.attempt, view.job.status.attempt);
  EXPECT_EQ(write.status.phase, Phase::kRunning);
  EXPECT_TRUE(has_condition(write.status, "Stalled", kReason));
  EXPECT_EQ(write.events.size(), 1u);
  view.job.status = write.status;
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "it says so once";
  view.observed.since_write = seconds(120);
  EXPECT_TRUE(all<WriteStatus>(decide(view, now() + seconds(120))).empty());
  end_pod(view, 0, 0);
  const Status status = after(view);
  EXPECT_TRUE(status.completed.contains(0));
  EXPECT_EQ(status.runs.size(), 1u);
  EXPECT_TRUE(has_condition(status, "Stalled", kReason));
  view.job.unknown.clear();
  EXPECT_GT(after(view).attempt, status.attempt);
  EXPECT_FALSE(after(view).holds("Stalled"));
}

TEST(Version, ThePodOfAnAttemptThatAnotherVersionRecordedIsNotCreated) {
  JobView view = newer(running_job());
  view.job.status.runs[0].node_name.clear();
  view.job.status.runs[0].pod_uid.clear();
  view.job.status.runs[0].refused = "exceeded quota";
  view.begun().observed.took_over = true;
  const Decision decision = settle(view);
  EXPECT_TRUE(all<CreatePod>(decision).empty());
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, Reason::kNotKnownToThisVersion);
  EXPECT_TRUE(has_condition(status, "Stalled", kReason));
  EXPECT_EQ(status.runs[0].refused, "exceeded quota");
  view.job.unknown.clear();
  EXPECT_EQ(all<CreatePod>(settle(view)).size(), 1u);
}

TEST(Version, InAQueueItAsksForNoPermitAndGivesItsOwnBack) {
  JobView view = newer(new_job());
  view.job.queue = QueueRef{"encode", 0, ""};
  view.observed.permit.waited = std::chrono::hours(1);
  EXPECT_FALSE(settle(view).awaits_permit);
  EXPECT_EQ(after(view).waiting->reason, Reason::kNotKnownToThisVersion);
  view.observed.permit.admitted = true;
  EXPECT_EQ(after(view).attempt, 1) << "nobody can start it with this admission any more";
  EXPECT_EQ(after(view).phase, Phase::kPending);
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(Version, AStageOfANewerVersionEndsAndTheNextOneDoesNotBegin) {
  JobView view = newer(running_job());
  Stage first{kFirstStage, false, false, view.job.spec};
  Stage second{"report", false, false, view.job.spec};
  view.job.stages = {first, second};
  view.job.status.stages.resize(2);
  view.job.status.stages[0].name = kFirstStage;
  view.job.status.stages[0].phase = StagePhase::kRunning;
  view.job.status.stages[0].start_time = now() - seconds(100);
  view.job.status.stages[1].name = "report";
  add_ended_pod(view, 1, 0);
  Status status = after(view);
  EXPECT_EQ(status.stage, 1u);
  EXPECT_EQ(status.stages[0].phase, StagePhase::kSucceeded);
  EXPECT_EQ(status.stages[1].phase, StagePhase::kPending);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_TRUE(has_condition(status, "Stalled", kReason));
}

TEST(Version, APoolOfANewerVersionTakesNoAttempt) {
  JobView view = new_job();
  view.job.spec.pool = PoolRef{"warm", "", std::nullopt};
  view.job.has_pool = true;
  view.observed.pool.unknown = "spec.gpus";
  view.observed.pool.wait = {std::chrono::hours(1), std::chrono::hours(1)};
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, Reason::kNotKnownToThisVersion);
  EXPECT_THAT(status.waiting->message, HasSubstr("spec.gpus"));
  EXPECT_TRUE(has_condition(status, "Stalled", kReason));
  view.job.status = status;
  view.observed.pool.unknown.clear();
  view.observed.pool.offers.push_back({"w-1", "w-uid", seconds(30)});
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_FALSE(after(view).holds("Stalled"));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
