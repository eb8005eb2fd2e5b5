// activeDeadlineSeconds counts from the first intent, and stands still while the job is suspended
// or its pod is gated.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// Its first attempt was recorded, and its gated pod created, 100 s ago; that is on record.
JobView gated_job() {
  JobView view = running_job();
  view.job.spec.active_deadline = seconds(150);
  PodView& pod = add_pod(view, 1, PodPhase::kPending);
  pod.node_name.clear();
  pod.gates = "quota";
  view.job.status = after(view);
  return view;
}

// The gate is removed, and the pod bound, 30 s from now.
JobView bound_job() {
  JobView view = gated_job();
  view.pods[0].gates.clear();
  view.pods[0].node_name = kNode;
  view.pods[0].placed = now() + seconds(30);
  return view;
}

bool is_late(const Status& status) {
  return has_condition(status, "FailureTarget", "DeadlineExceeded");
}

TEST(GatedTime, TheJobsDeadlineStandsStillWhileItsPodIsGated) {
  const JobView view = gated_job();
  EXPECT_EQ(view.job.status.waiting->reason, "PodGated");
  EXPECT_FALSE(view.job.status.waiting->deadline);
  EXPECT_EQ(after(view, now() + seconds(86400)).phase, Phase::kRunning);
}

TEST(GatedTime, TimeCountsWhileTheApiServerRefusesThePodOfAnotherRun) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.spec.active_deadline = seconds(150);
  for (PodView& pod : view.pods) {
    pod.phase = PodPhase::kPending;
    pod.containers.clear();
    pod.node_name.clear();
    pod.gates = "quota";
  }
  EXPECT_EQ(after(view, now() + seconds(86400)).phase, Phase::kRunning) << "all are gated";
  view.pods.pop_back();
  view.job.status.runs[1].refused = "exceeded quota: team";
  view.job.status.runs[1].pod_uid.clear();
  EXPECT_FALSE(is_late(after(view, now() + seconds(49))));
  EXPECT_TRUE(is_late(after(view, now() + seconds(51))));
}

TEST(GatedTime, APodThatIsGatedWhileNobodyLooksIsNotOutOfTimeWhenTheyDo) {
  JobView view = gated_job();
  view.job.status.waiting = Waiting{Reason::kPodStarting, "m", "n", std::nullopt};
  EXPECT_EQ(after(view, now() + seconds(86400)).phase, Phase::kRunning);
}

TEST(GatedTime, GatedTimeIsCountedOnceAndPersisted) {
  JobView view = bound_job();
  const Status status = after(view, now() + seconds(41));
  EXPECT_EQ(status.waiting->reason, "PodStarting");
  EXPECT_EQ(status.suspended, seconds(130));
  view.job.status = status;
  EXPECT_EQ(after(view, now() + seconds(60)).suspended, seconds(130));
  // 150 s from the intent 100 s ago, and 130 of them gated.
  EXPECT_EQ(after(view, now() + seconds(179)).phase, Phase::kRunning);
  EXPECT_TRUE(is_late(after(view, now() + seconds(181))));
}

TEST(GatedTime, TheRecordOutlivesWhoeverMadeItAndGoesNoFurtherThanTheBinding) {
  // Nobody looked for a day: the pod's own condition says until when it was gated.
  const JobView view = bound_job();
  const Status status = after(view, now() + seconds(86400));
  EXPECT_EQ(status.suspended, seconds(130));
  EXPECT_TRUE(is_late(status)) << "the day counts";
}

TEST(GatedTime, GatedTimeIsKeptHoweverTheAttemptEnds) {
  JobView view = gated_job();
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view, now() + seconds(50)).suspended, seconds(150));
  view.job.spec.suspend = false;
  delete_pod(view.pods[0], seconds(0));
  const Status status = after(view, now() + seconds(50));
  EXPECT_EQ(status.attempt, 2);
  EXPECT_EQ(status.suspended, seconds(150));
}

TEST(GatedTime, APodThatStaysUnschedulableAfterItsGateCounts) {
  JobView view = gated_job();
  view.pods[0].gates.clear();
  view.pods[0].unschedulable = "no room";
  view.job.status = after(view, now() + seconds(10));
  EXPECT_EQ(view.job.status.suspended, seconds(110));
  EXPECT_TRUE(is_late(after(view, now() + seconds(161))));
}

TEST(GatedTime, AJobThatIsCreatedSuspendedStartsWithItsFirstIntent) {
  JobView view = new_job();
  view.job.spec.suspend = true;
  view.job.spec.active_deadline = seconds(50);
  view.job.status = after(view);
  EXPECT_FALSE(view.job.status.start_time);
  view.job.spec.suspend = false;
  view.job.status = after(view, now() + seconds(1000));
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  view.job.status = after(view, now() + seconds(1000));
  EXPECT_EQ(view.job.status.phase, Phase::kRunning);
  EXPECT_EQ(view.job.status.start_time, now() + seconds(1000));
  EXPECT_EQ(view.job.status.waiting->deadline, now() + seconds(1050));
  EXPECT_EQ(view.job.status.suspended, seconds(0)) << "it had not begun";
}

TEST(Deadlines, TheJobsDeadlineEndsItInEveryPhaseButSuspended) {
  for (const Phase phase : {Phase::kPending, Phase::kRunning, Phase::kBackoff}) {
    JobView view = job_in(phase);
    view.begun().observed.own_intent = true;
    view.job.spec.active_deadline = seconds(105);
    EXPECT_EQ(after(view, now() + seconds(105 - 100)).phase, Phase::kFailed);
    EXPECT_TRUE(has_condition(after(view, now() + seconds(5)), "Failed", "DeadlineExceeded"));
    EXPECT_NE(after(view, now() + seconds(4)).phase, Phase::kFailed);
    if (phase == Phase::kBackoff) {
      EXPECT_EQ(decide(view, now()).wake_after, seconds(5));
    }
  }
  JobView view = job_in(Phase::kSuspended);
  view.job.spec.suspend = true;
  view.job.spec.active_deadline = seconds(50);
  EXPECT_EQ(after(view).phase, Phase::kSuspended);
}

TEST(Deadlines, TheJobsDeadlineLooksLiveBeforeItEndsAnAttempt) {
  JobView view = job_with_pod();
  view.job.status = after(view);
  view.job.spec.active_deadline = seconds(100);
  EXPECT_TRUE(decide(view, now()).confirm);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u);
  view.begun().observed.confirmed = true;
  view.pods.clear();
  add_ended_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(Deadlines, SuspendedTimeDoesNotCountForTheJobsDeadline) {
  JobView view = job_in(Phase::kSuspended);  // for 60 s now, started 100 s ago
  view.job.spec.active_deadline = seconds(50);
  view.job.status.suspended = seconds(7);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.suspended, seconds(67));
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kRunning);
  view.begun().observed.own_intent = true;
  EXPECT_EQ(decide(view, now()).wake_after, seconds(17));
  EXPECT_EQ(after(view, now() + seconds(17)).phase, Phase::kFailed);
}

TEST(Deadlines, RoundingsOfManySuspensionsCancelOut) {
  JobView view = job_in(Phase::kSuspended);
  Time at = now();
  for (int i = 0; i < 100; ++i) {
    view.job.spec.suspend = true;
    view.job.status.phase = Phase::kPending;
    view.job.status.conditions.clear();
    view.job.status = after(view, at);
    at += std::chrono::milliseconds(1300);
    view.job.spec.suspend = false;
    view.job.status = after(view, at);
    at += std::chrono::milliseconds(1000);
  }
  EXPECT_GE(view.job.status.suspended, seconds(120));
  EXPECT_LE(view.job.status.suspended, seconds(140));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
