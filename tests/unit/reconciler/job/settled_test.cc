// When a job that has ended is settled, so that no replica watches it any more, and when it is at
// rest.
#include <gtest/gtest.h>

#include "reconciler/job/settled.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView succeeds() {
  JobView view = running_job();
  add_ended_pod(view, 1, 0);
  return view;
}

// Without `settled`.
JobView ended(Settling settling) {
  JobView view = job_in(Phase::kSucceeded);
  view.observed.settling = settling;
  return view;
}

JobView settled() {
  JobView view = job_in(Phase::kSucceeded);
  view.job.status.settled = true;
  return view;
}

TEST(Settled, TheWriteThatEndsAJobSettlesIt) {
  const Status status = after(succeeds());
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_TRUE(status.settled);
}

TEST(Settled, AJobThatGoesOnIsNot) {
  JobView view = running_job();
  add_ended_pod(view, 1, 1);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_FALSE(status.settled);
}

TEST(Settled, WhileATargetHasToHearOfTheEndItIsNot) {
  JobView view = succeeds();
  view.job.notify = {"target"};
  const Status status = after(view);
  EXPECT_FALSE(status.outbox.empty());
  EXPECT_FALSE(status.settled);
}

TEST(Settled, WhileAFinalizerOfOursHoldsTheJobItIsNot) {
  JobView view = succeeds();
  view.job.holds_outbox = true;
  EXPECT_FALSE(after(view).settled);
}

TEST(Settled, UntilItsBatchJobReportsItsEndItIsNot) {
  JobView view = succeeds();
  view.observed.settling = Settling::kNotYet;
  EXPECT_FALSE(after(view).settled);
  EXPECT_FALSE(decide(ended(Settling::kNotYet), now()).lacks_settled);
  EXPECT_TRUE(decide(ended(Settling::kNotYet), now()).writes.empty());
}

TEST(Settled, OnceItDoesAWriteOfItsOwnSettlesIt) {
  EXPECT_TRUE(after(ended(Settling::kNow)).settled);
}

TEST(Settled, TheJobOfAnEarlierVersionWaitsForItsTurn) {
  const Decision decision = decide(ended(Settling::kWithAWrite), now());
  EXPECT_TRUE(decision.lacks_settled);
  EXPECT_TRUE(decision.writes.empty());
  EXPECT_FALSE(decide(settled(), now()).lacks_settled);
}

TEST(Settled, AJobThatHasItsTurnAndAnEventToTellWaits) {
  JobView view = ended(Settling::kNow);
  OutboxEntry entry;
  entry.number = 1;
  entry.targets = {"target"};
  view.job.status.notifications = 1;
  view.job.status.outbox.push_back(entry);
  for (const WriteStatus& write : all<WriteStatus>(decide(view, now()))) {
    EXPECT_FALSE(write.status.settled && !write.status.outbox.empty());
  }
  EXPECT_FALSE(decide(view, now()).lacks_settled);
}

TEST(Settled, ASettledJobIsAtRestOnceItsPodsAreReleased) {
  JobView view = settled();
  add_ended_pod(view, 1, 0);
  const Decision decision = decide(view, now());
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
  EXPECT_FALSE(decision.at_rest);
  view.pods.clear();
  EXPECT_TRUE(decide(view, now()).at_rest);
}

TEST(Settled, UntilItsBatchJobReportsItsEndItIsNotAtRest) {
  JobView view = settled();
  EXPECT_TRUE(is_at_rest(view));
  view.observed.mirrored = false;
  EXPECT_FALSE(is_at_rest(view));
}

TEST(Settled, ItIsAtRestOnceNoPodIsHeld) {
  JobView view = settled();
  add_ended_pod(view, 1, 0);
  EXPECT_FALSE(is_at_rest(view));
  view.pods.back().has_finalizer = false;
  EXPECT_TRUE(is_at_rest(view));
}

TEST(Settled, APodThatStillRunsKeepsItFromRest) {
  JobView view = settled();
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(5));
  view.pods.back().has_finalizer = false;
  EXPECT_TRUE(decide(view, now()).writes.empty());
  EXPECT_FALSE(decide(view, now()).at_rest) << "it is deleted again if it does not go";
}

TEST(Settled, APodThatMayStillComeKeepsItFromRest) {
  JobView view = settled();
  OpenCreation creation;
  creation.attempt = 1;
  creation.pod_name = pod_of(1);
  creation.left = seconds(5);
  view.observed.creations.push_back(creation);
  EXPECT_FALSE(decide(view, now()).at_rest);
}

TEST(Settled, ItsBatchJobKeepsItFromRestUntilThatReportsItsEnd) {
  JobView view = settled();
  view.observed.settling = Settling::kNotYet;
  EXPECT_FALSE(decide(view, now()).at_rest);
}

TEST(Settled, AJobThatIsNotSettledIsNeverAtRest) {
  JobView view = settled();
  view.job.status.settled = false;
  EXPECT_FALSE(decide(view, now()).at_rest);
}

TEST(Settled, AtTheEndOfItsTimeToLiveItIsDeletedAndNotAtRest) {
  JobView view = settled();
  view.job.spec.ttl_after_finished = seconds(60);
  view.job.status.completion_time = now() - seconds(59);
  EXPECT_TRUE(decide(view, now()).at_rest);
  view.job.status.completion_time = now() - seconds(60);
  EXPECT_EQ(all<DeleteJob>(decide(view, now())).size(), 1u);
  EXPECT_FALSE(decide(view, now()).at_rest);
}

TEST(Settled, ItStaysSettledWhateverElseIsWritten) {
  JobView view = settled();
  view.job.generation = view.job.status.observed_generation + 1;
  view.observed.since_write = std::chrono::hours(1);
  EXPECT_TRUE(after(view).settled);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
