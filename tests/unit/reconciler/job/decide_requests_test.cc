// Suspend, resume, cancel, deletion, and podReplacementPolicy.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

TEST(Suspend, StopsThePodAtNoCostAndWaits) {
  JobView view = job_with_pod();
  view.job.spec.suspend = true;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSuspended);
  EXPECT_TRUE(has_condition(status, "Suspended", "JobSuspended"));
  EXPECT_EQ(status.waiting->reason, "Suspended");
  EXPECT_FALSE(status.waiting->deadline);
  EXPECT_EQ(status.failures + status.disruptions, 0);
  const Decision decision = settle(view);
  EXPECT_EQ(all<DeletePod>(decision).at(0).uid, view.pods[0].uid);
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
  EXPECT_TRUE(written(view).events.empty());
}

TEST(Suspend, ASuspendedJobAtRestWritesNothing) {
  JobView view = job_in(Phase::kSuspended);
  view.job.spec.suspend = true;
  EXPECT_TRUE(decide(view, now()).writes.empty());
  EXPECT_FALSE(decide(view, now()).wake_after);
}

TEST(Suspend, ResumeClearsTheConditionAndStartsTheNextAttempt) {
  JobView view = job_in(Phase::kSuspended);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_FALSE(view.job.status.condition("Suspended")->status);
  EXPECT_EQ(view.job.status.condition("Suspended")->reason, "JobResumed");
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(Suspend, ASuccessBeforeItWasRecordedCountsAndOneAfterItDoesNot) {
  JobView view = job_with_ended_pod(0);
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
  view.job.status = after(job_in(Phase::kSuspended));
  view.job.status.phase = Phase::kSuspended;
  EXPECT_EQ(after(view).phase, Phase::kSuspended);
  EXPECT_EQ(all<ReleasePod>(settle(view)).size(), 1u);
}

TEST(Suspend, LooksLiveFirstForAnEndThatIsNotInTheViewYet) {
  for (const bool cancel : {false, true}) {
    JobView view = job_with_pod();
    (cancel ? view.job.spec.cancel : view.job.spec.suspend) = true;
    EXPECT_TRUE(decide(view, now()).confirm);
    view.pods.clear();
    EXPECT_TRUE(decide(view, now()).confirm);
  }
}

TEST(Suspend, AFailureThatSpendsTheBudgetWinsOverIt) {
  JobView view = job_with_ended_pod(1);
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).phase, Phase::kSuspended);
  EXPECT_EQ(after(view).failures, 1);
  view.job.spec.backoff_limit = 0;
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

TEST(Cancel, WaitsForItsPodAndThenEnds) {
  JobView view = job_in(Phase::kCancelling);
  view.job.spec.cancel = true;
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(1));
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kCancelling);
  EXPECT_EQ(status.waiting->deadline, now() + seconds(29 + 40));
  EXPECT_EQ(decide(view, now()).wake_after, seconds(29 + 40));
  view.pods.clear();
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.phase, Phase::kCancelled);
  EXPECT_TRUE(has_condition(write.status, "Cancelled", "Cancelled"));
  EXPECT_TRUE(write.ended.empty());
}

TEST(Cancel, WithADeadWorkerEndsAtGraceAndWindow) {
  JobView view = job_in(Phase::kCancelling);
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(0));
  EXPECT_EQ(after(view, now() + seconds(69)).phase, Phase::kCancelling);
  EXPECT_EQ(written(view, now() + seconds(70)).ended.at(0).orphan_class, "cancel_dead_worker");
  EXPECT_EQ(after(view, now() + seconds(70)).phase, Phase::kCancelled);
}

TEST(Cancel, APodOnAMissingNodeIsNotWaitedForLongerThanTheWindow) {
  JobView view = job_in(Phase::kCancelling);
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(0));
  view.observed.nodes[kNode].missing_for = seconds(38);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(2));
  view.observed.nodes[kNode].missing_for = seconds(40);
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

// A policy may forbid its deletion for good.
TEST(Cancel, APodThatIsNeverAskedToGoIsNotWaitedForLongerThanTheWindow) {
  JobView view = job_in(Phase::kCancelling);
  add_pod(view, 1, PodPhase::kRunning);
  view.observed.deletions[pod_of(1)] = {true, "denied"};
  view.observed.cancelling_for = seconds(39);
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(1));
  EXPECT_EQ(decide(view, now()).wake_after, seconds(1));
  view.observed.cancelling_for = seconds(40);
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(Cancel, APodFoundByTheLiveLookIsStoppedAndWaitedFor) {
  JobView view = job_in(Phase::kCancelling);
  EXPECT_TRUE(decide(view, now()).confirm);
  view.begun().observed.confirmed = true;
  add_pod(view, 1, PodPhase::kRunning);
  const Decision decision = decide(view, now());
  EXPECT_EQ(all<DeletePod>(decision).size(), 1u);
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
}

TEST(Cancel, ASuccessThatArrivesLaterDoesNotCount) {
  JobView view = job_in(Phase::kCancelling);
  add_ended_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(Cancel, CancellingSticksWhateverTheSpecSays) {
  JobView view = job_in(Phase::kCancelling);
  view.job.spec.cancel = false;
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(Deletion, AJobThatIsBeingDeletedStartsNothingAndReleasesItsPods) {
  for (const Phase phase : {Phase::kNone, Phase::kPending, Phase::kRunning, Phase::kBackoff,
                            Phase::kSuspended, Phase::kCancelling, Phase::kSucceeded}) {
    JobView view = job_in(phase);
    view.job.deleting = true;
    view.job.status.begun().next_attempt_time.reset();
    view.begun().observed.own_intent = true;
    add_pod(view, 1, PodPhase::kRunning);
    const Decision decision = settle(view);
    ASSERT_EQ(decision.writes.size(), 1u) << to_string(phase);
    EXPECT_EQ(all<ReleasePod>(decision).at(0).name, pod_of(1));
  }
}

TEST(Deletion, APodWithoutLabelsIsLookedForSoThatItDoesNotHoldTheDeletionUp) {
  JobView view = running_job();
  view.job.deleting = true;
  EXPECT_TRUE(decide(view, now()).confirm);
  view.begun().observed.confirmed = true;
  EXPECT_TRUE(decide(view, now()).writes.empty());
  add_pod(view, 1, PodPhase::kRunning).job_uid_label.clear();
  EXPECT_EQ(all<ReleasePod>(decide(view, now())).size(), 1u);
  EXPECT_EQ(decide(view, now()).writes.size(), 1u);
}

JobView replacing(PodReplacementPolicy policy) {
  JobView view = running_job();
  view.job.spec.pod_replacement = policy;
  add_pod(view, 1, PodPhase::kRunning);
  view.observed.nodes[kNode].silent_for = seconds(50);
  return view;
}

TEST(PodReplacement, TerminatingOrFailedGoesOnOnceTheOldPodWasAskedToGo) {
  const Decision decision = settle(replacing(PodReplacementPolicy::kTerminatingOrFailed));
  ASSERT_EQ(decision.writes.size(), 4u);
  EXPECT_EQ(position<WriteStatus>(decision), 0u);
  EXPECT_EQ(position<DeletePod>(decision), 1u);
  EXPECT_EQ(position<CreatePod>(decision), 2u);
  EXPECT_EQ(position<ReleasePod>(decision), 3u);
}

TEST(PodReplacement, FailedWaitsUntilTheOldPodHasEnded) {
  JobView view = replacing(PodReplacementPolicy::kFailed);
  const Decision decision = settle(view);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kBackoff);
  EXPECT_EQ(view.job.status.waiting->reason, "OldPodNotEnded");
  EXPECT_EQ(all<DeletePod>(decision).size(), 1u);
  EXPECT_TRUE(all<CreatePod>(decision).empty());
  delete_pod(view.pods[0], seconds(0));
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "it is told already";
  view.pods.clear();
  EXPECT_TRUE(decide(view, now()).confirm) << "the pods' watch may lag";
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(PodReplacement, FailedGoesOnWhenTheNodeObjectIsGoneForTheWindow) {
  JobView view = replacing(PodReplacementPolicy::kFailed);
  view.job.status = after(view);
  view.observed.nodes[kNode].missing_for = seconds(30);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(10));
  view.observed.nodes[kNode].missing_for = seconds(40);
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(PodReplacement, FailedIsStalledWhenTheOldPodStaysForTheStartDeadline) {
  JobView view = replacing(PodReplacementPolicy::kFailed);
  view.job.status = after(view);
  const Time late = now() + seconds(600);
  EXPECT_EQ(decide(view, late - seconds(3)).wake_after, seconds(3));
  EXPECT_FALSE(after(view, late - seconds(3)).condition("Stalled"));
  view.job.status = after(view, late);
  EXPECT_TRUE(has_condition(view.job.status, "Stalled", "OldPodNotEnded"));
  EXPECT_TRUE(all<WriteStatus>(settle(view, late + seconds(60))).empty());
  view.pods.clear();
  EXPECT_FALSE(after(view, late).condition("Stalled")->status);
}

TEST(PodReplacement, APodOnAMissingNodeBesideOneThatLivesMakesNoHotLoop) {
  JobView view = job_in(Phase::kBackoff);
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.status.attempt = 2;
  view.job.status.begun().pod_name = pod_of(2);
  view.job.status.begun().next_attempt_time = now();
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(9));
  view.pods[0].node_name = "gone";
  view.observed.nodes["gone"].missing_for = seconds(500);
  delete_pod(add_pod(view, 2, PodPhase::kRunning), seconds(9));
  EXPECT_GT(decide(view, now()).wake_after, seconds(1));
}

TEST(PodReplacement, FailedStartsAtOnceAfterAPodThatEndedByItself) {
  JobView view = running_job();
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  add_ended_pod(view, 1, 1).disruption_target = true;
  EXPECT_EQ(after(view).attempt, 2);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
