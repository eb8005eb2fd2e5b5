// Without the guard in the API server no attempt starts, and all else goes on.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView unguarded(JobView view) {
  view.observed.guard = {true, "the API server lacks the guard: there is no policy",
                         "somebody has installed it"};
  return view;
}

TEST(Guard, AJobGetsNoAttemptAndSaysWhy) {
  JobView view = unguarded(new_job());
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kPending);
  EXPECT_EQ(status.attempt, 0);
  EXPECT_EQ(status.waiting->reason, Reason::kGuardMissing);
  EXPECT_THAT(status.waiting->message, HasSubstr("there is no policy"));
  EXPECT_THAT(status.waiting->next_action, HasSubstr("once somebody has installed it"));
  EXPECT_FALSE(status.holds("Stalled")) << "one alert for all jobs, not one message for each";
  view.job.status = status;
  EXPECT_TRUE(settle(view).writes.empty()) << "it says so once";
}

TEST(Guard, TheJobLooksAgainForItself) {
  JobView view = unguarded(new_job());
  view.job.status = after(view);
  const Decision decision = settle(view);
  ASSERT_TRUE(decision.wake_after);
  EXPECT_LE(*decision.wake_after, kGuardLook);
}

TEST(Guard, OnceItIsThereTheJobStarts) {
  JobView view = unguarded(new_job());
  view.job.status = after(view);
  view.observed.guard = {};
  EXPECT_EQ(after(view).phase, Phase::kRunning);
}

TEST(Guard, AnOpenAttemptGetsItsPodAndItsEndCounts) {
  const JobView fresh = unguarded(running_job());
  EXPECT_EQ(all<CreatePod>(settle(fresh)).size(), all<CreatePod>(settle(running_job())).size())
      << "it is recorded";
  JobView view = unguarded(running_job());
  add_ended_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(Guard, AnAttemptThatEndsHasNoSuccessor) {
  JobView view = unguarded(running_job());
  add_ended_pod(view, 1, 1);
  Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.waiting->reason, Reason::kRetryBackoff) << "what comes first";
  view.job.status = status;
  view.pods.clear();
  const Decision later = settle(view, now() + std::chrono::hours(9));
  EXPECT_TRUE(all<CreatePod>(later).empty());
  const WriteStatus write = only(all<WriteStatus>(later));
  EXPECT_EQ(write.status.attempt, 1);
  EXPECT_EQ(write.status.waiting->reason, Reason::kGuardMissing);
}

TEST(Guard, AJobThatIsCancelledEnds) {
  JobView view = unguarded(new_job());
  view.job.status = after(view);
  view.job.spec.cancel = view.job.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(Guard, RunsBesideOpenOnesWaitAndTheJobSaysSo) {
  JobView view = job_of_runs(3, 2, 2);
  view.job.spec.parallelism = 3;
  view.observed.since_write = seconds(60);
  view = unguarded(view);
  const Status status = after(view);
  EXPECT_EQ(status.runs.size(), 2U);
  EXPECT_THAT(status.waiting->message, HasSubstr("no further run opens: the API server lacks"));
  view.job.status = status;
  const Decision decision = settle(view);
  EXPECT_TRUE(decision.writes.empty() || all<WriteStatus>(decision).empty()) << "it says so once";
  ASSERT_TRUE(decision.wake_after);
  EXPECT_LE(*decision.wake_after, kGuardLook);
  view.observed.guard = {};
  EXPECT_EQ(after(view).runs.size(), 3U);
  EXPECT_THAT(after(view).waiting->message, Not(HasSubstr("lacks the guard")));
}

TEST(Guard, BeforeItsFaultIsKnownNothingStartsAndNothingIsSaid) {
  JobView view = new_job();
  view.observed.guard = {true, "", ""};
  const Decision decision = settle(view);
  EXPECT_TRUE(decision.writes.empty());
  ASSERT_TRUE(decision.wake_after);
  EXPECT_LE(*decision.wake_after, kGuardLook);
}

TEST(Guard, AWriteThatHasToSayAWaitBeforeThatSaysThatTheOperatorLooks) {
  JobView view = running_job();  // the attempt is lost
  view.job.status.begun().node_name = kNode;
  view.observed.guard = {true, "", ""};
  const Status status = after(view);
  ASSERT_EQ(status.waiting->reason, Reason::kGuardMissing);
  EXPECT_THAT(status.waiting->message, HasSubstr("looks for the policies"));
  EXPECT_THAT(status.waiting->next_action, HasSubstr("once it has found them"));
}

TEST(Guard, ARunThatRestsIsNotHeldByIt) {
  JobView view = unguarded(running_job());
  add_ended_pod(view, 1, 1);
  view.job.status = after(view);
  view.pods.clear();
  EXPECT_EQ(after(view).waiting->reason, Reason::kRetryBackoff);
  EXPECT_THAT(after(view).waiting->message, Not(HasSubstr("lacks the guard")));
}

TEST(Guard, AJobOfAPoolAsksForNoSlot) {
  JobView view = unguarded(new_job());
  view.job.spec.pool = PoolRef{"small", "", std::nullopt};
  view.job.has_pool = true;
  EXPECT_EQ(settle(view).awaits_slots, 0);
  EXPECT_EQ(after(view).waiting->reason, Reason::kGuardMissing);
}

TEST(Guard, NoPodIsReadForAnAttemptThatMayNotStart) {
  JobView view = unguarded(running_job());
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  add_ended_pod(view, 1, 1);
  view.job.status = after(view);
  view.pods.clear();
  EXPECT_FALSE(decide(view, now() + std::chrono::hours(1)).confirm);
}

TEST(Guard, AJobInAQueueKeepsItsPlace) {
  JobView view = unguarded(new_job());
  view.job.queue = QueueRef{"encode", 0, ""};
  view.observed.permit.waited = seconds(5);
  EXPECT_EQ(after(view).waiting->reason, Reason::kQueued);
  EXPECT_TRUE(settle(view).awaits_permit);
  view.observed.permit.admitted = true;
  EXPECT_EQ(after(view).waiting->reason, Reason::kGuardMissing);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
