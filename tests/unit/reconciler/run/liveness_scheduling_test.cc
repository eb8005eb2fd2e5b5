// Pods that no node has: what they wait for, and what that costs.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// Its pod was created 100 s ago, and no scheduler has said anything of it.
JobView unseen_job() {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kPending);
  pod.node_name.clear();
  pod.scheduler = "default-scheduler";
  return view;
}
JobView unschedulable_job() {
  JobView view = unseen_job();
  view.pods[0].unschedulable = "0/3 nodes are available: 3 Insufficient cpu.";
  view.pods[0].placed = now() - seconds(90);
  return view;
}
JobView gated_job() {
  JobView view = unseen_job();
  view.pods[0].gates = "kueue.x-k8s.io/admission";
  view.pods[0].unschedulable = "Scheduling is blocked due to non-empty scheduling gates";
  return view;
}
const Time kNextYear = now() + std::chrono::hours(24 * 365);

TEST(Scheduling, APodThatCannotBeScheduledWaitsWithoutLimitAndCost) {
  const Status status = after(unschedulable_job(), kNextYear);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_TRUE(status.history.empty());
  EXPECT_EQ(status.disruptions, 0);
  ASSERT_TRUE(status.waiting);
  EXPECT_EQ(status.waiting->reason, "PodUnschedulable");
  EXPECT_EQ(status.waiting->message, "0/3 nodes are available: 3 Insufficient cpu.");
  EXPECT_EQ(status.waiting->since, now() - seconds(90));
  EXPECT_FALSE(status.waiting->deadline);
  EXPECT_THAT(status.waiting->next_action, Not(HasSubstr("StartTimeout")));
}

TEST(Scheduling, AGatedPodWaitsWithoutLimitAndCost) {
  const Status status = after(gated_job(), kNextYear);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.disruptions, 0);
  ASSERT_TRUE(status.waiting);
  EXPECT_EQ(status.waiting->reason, "PodGated");
  EXPECT_EQ(status.waiting->message,
            "Scheduling is blocked due to non-empty scheduling gates: kueue.x-k8s.io/admission");
  EXPECT_EQ(status.waiting->since, now() - seconds(100)) << "since its creation";
  EXPECT_FALSE(status.waiting->deadline);
  EXPECT_FALSE(status.condition("Stalled"));
}

TEST(Scheduling, WhatItWaitsForIsReportedAfterASecond) {
  for (JobView view : {unschedulable_job(), gated_job()}) {
    view.pods[0].created = now();
    EXPECT_TRUE(decide(view, now() + std::chrono::milliseconds(900)).writes.empty());
    EXPECT_EQ(decide(view, now() + seconds(1)).writes.size(), 1u);
  }
}

TEST(Scheduling, APodThatIsBoundAtLastAndStartsCostsNoWriteInBetween) {
  JobView view = gated_job();
  view.job.status = after(view);
  view.pods[0].gates.clear();
  view.pods[0].unschedulable.clear();
  view.begun().observed.pod.elsewhere = now() + seconds(60);
  EXPECT_TRUE(decide(view, now() + seconds(61)).writes.empty());
  view.pods[0].node_name = kNode;
  view.pods[0].placed = now() + seconds(62);
  view.begun().observed.pod.placed = now() + seconds(62);
  EXPECT_TRUE(decide(view, now() + seconds(63)).writes.empty());
  EXPECT_EQ(after(view, now() + seconds(72)).waiting->reason, "PodStarting");
}

TEST(Scheduling, TheScheduleDeadlineEndsTheAttemptAsAStartTimeout) {
  for (JobView view : {unschedulable_job(), gated_job(), unseen_job()}) {
    view.job.spec.schedule_deadline = seconds(300);
    const Time due = now() + seconds(200);
    const Status before = after(view, due - std::chrono::milliseconds(1));
    EXPECT_TRUE(before.history.empty());
    EXPECT_EQ(before.waiting->deadline, due);
    EXPECT_TRUE(decide(view, due).confirm) << "after a live look";
    const WriteStatus write = written(view, due);
    EXPECT_EQ(only(write.status.history).outcome, Outcome::kStartTimeout);
    EXPECT_EQ(write.status.disruptions, 1);
    EXPECT_EQ(write.ended.at(0).orphan_class, "pod_never_started");
    EXPECT_THAT(write.events.at(0).note, HasSubstr(view.pods[0].unschedulable));
  }
}

TEST(Scheduling, ADeadlineThatPassedWhileThePodWasReadEndsNothing) {
  JobView view = unschedulable_job();
  view.job.spec.schedule_deadline = seconds(100);
  view.observed.asked = now() - seconds(1);
  EXPECT_TRUE(after(view).history.empty()) << "it may have a node by now";
  view.observed.asked.reset();
  EXPECT_EQ(only(after(view).history).outcome, Outcome::kStartTimeout);
}

TEST(Scheduling, TheScheduleDeadlineIsOverOnceAPodIsBound) {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kPending);
  view.job.spec.schedule_deadline = seconds(50);
  EXPECT_TRUE(after(view).history.empty());
}

TEST(Scheduling, TheScheduleDeadlineWaitsForReportsAfterAnOutage) {
  JobView view = unschedulable_job();
  view.job.spec.schedule_deadline = seconds(50);
  view.observed.live_for = seconds(4);
  EXPECT_FALSE(decide(view, now()).confirm);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(11));
}

TEST(Scheduling, TheStartDeadlineCountsFromTheMomentThatThePodWasBound) {
  JobView view = unschedulable_job();
  PodView& pod = view.pods[0];
  pod.created = now() - std::chrono::hours(50);
  pod.node_name = kNode;
  pod.unschedulable.clear();
  pod.placed = now() - seconds(100);
  EXPECT_TRUE(after(view, now() + seconds(499)).history.empty());
  EXPECT_EQ(after(view, now() + seconds(11)).waiting->deadline, now() + seconds(500));
  const Status status = after(view, now() + seconds(500));
  EXPECT_EQ(only(status.history).outcome, Outcome::kStartTimeout);
}

TEST(Scheduling, WithAHeartbeatTheAgentHasTheStartDeadlineFromThatMomentToo) {
  JobView view = running_job();
  view.job.spec.heartbeat = Heartbeat{};
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.created = now() - std::chrono::hours(50);
  pod.placed = now() - seconds(10);
  pod.containers[0].started_at = now() - seconds(5);
  pod.containers[0].worker = true;
  view.observed.nodes[kNode] = NodeObservation{};
  EXPECT_TRUE(after(view).history.empty());
}

TEST(Scheduling, APodThatNoSchedulerKnowsIsStalledAfterTheStartDeadline) {
  JobView view = unseen_job();
  const Time due = now() + seconds(500);
  const Status before = after(view, due - seconds(1));
  EXPECT_EQ(before.waiting->reason, "PodStarting");
  EXPECT_FALSE(before.waiting->deadline);
  EXPECT_FALSE(before.condition("Stalled"));
  view.job.status = before;
  EXPECT_EQ(decide(view, due - seconds(1)).wake_after, seconds(1));
  const Status status = after(view, due);
  EXPECT_EQ(status.waiting->reason, "NoScheduler");
  EXPECT_THAT(status.waiting->message, HasSubstr("default-scheduler"));
  EXPECT_TRUE(has_condition(status, "Stalled", "NoScheduler"));
  EXPECT_TRUE(status.history.empty()) << "it costs nothing";
  view.job.status = status;
  EXPECT_TRUE(decide(view, due + seconds(60)).writes.empty());
  view.pods[0].unschedulable = "no room";
  EXPECT_FALSE(after(view, due + seconds(70)).condition("Stalled")->status);
}

TEST(Scheduling, AGatedPodIsNotStalledHoweverLongItWaits) {
  EXPECT_FALSE(after(gated_job(), kNextYear).condition("Stalled"));
}

TEST(Scheduling, NewWordsOfTheSchedulerAloneAreWrittenAtMostEachHalfMinute) {
  JobView view = unschedulable_job();
  view.job.status = after(view);
  view.pods[0].unschedulable = "0/4 nodes are available: 4 Insufficient cpu.";
  view.observed.since_write = seconds(20);
  EXPECT_TRUE(decide(view, now() + seconds(20)).writes.empty());
  EXPECT_EQ(decide(view, now() + seconds(20)).wake_after, seconds(10));
  view.observed.since_write = seconds(30);
  EXPECT_EQ(after(view, now() + seconds(30)).waiting->message, view.pods[0].unschedulable);
}

TEST(Scheduling, AnIntentPromisesNoEndByTime) {
  const Status status = after(new_job());
  EXPECT_EQ(status.waiting->reason, "PodStarting");
  EXPECT_FALSE(status.waiting->deadline) << "nobody knows when its pod will be bound";
}

TEST(Scheduling, SinceWhenAJobWaitsIsKeptWhileItWaitsForTheSame) {
  JobView view = unschedulable_job();
  view.job.status = after(view);
  view.pods[0].placed = now() + seconds(30);  // another scheduler's clock
  view.pods[0].unschedulable = "other words";
  EXPECT_EQ(after(view, now() + seconds(40)).waiting->since, now() - seconds(90));
  view.job.status = after(new_job());
  EXPECT_EQ(view.job.status.waiting->since, now());
}

}  // namespace
}  // namespace holdfast::reconciler::testing
