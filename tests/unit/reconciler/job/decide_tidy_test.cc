// Pods that no attempt stands behind any more, labels, and jobs whose time to live is over.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView at_rest(std::int64_t attempt) {
  JobView view = running_job(attempt);
  add_pod(view, attempt, PodPhase::kRunning);
  view.job.status = after(view);
  return view;
}

TEST(Tidy, AnOldAttemptsPodThatAppearsLateIsStoppedAndReleased) {
  JobView view = at_rest(2);
  add_pod(view, 1, PodPhase::kRunning);
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 2u);
  EXPECT_EQ(all<DeletePod>(decision).at(0).name, pod_of(1));
  EXPECT_EQ(all<DeletePod>(decision).at(0).version, 1001u);
  EXPECT_EQ(all<ReleasePod>(decision).at(0).name, pod_of(1));
}

TEST(Tidy, WhatAnOldAttemptsPodReportsDoesNotCountAndItIsReleased) {
  JobView view = at_rest(2);
  add_ended_pod(view, 1, 0);
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 1u);
  EXPECT_EQ(all<ReleasePod>(decision).at(0).name, pod_of(1));
}

TEST(Tidy, AReleasedOldPodThatIsBeingStoppedIsLeftAlone) {
  JobView view = at_rest(2);
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(5));
  view.pods.back().has_finalizer = false;
  EXPECT_TRUE(decide(view, now()).writes.empty());
}

TEST(Tidy, APodWithTheLabelOfAnotherShardGetsItsLabelsBackAndOneWithoutALabelDoesNot) {
  JobView view = at_rest(1);
  view.shard_label = "7-of-32";
  for (const char* const label : {"", "7-of-32"}) {
    view.pods[0].shard_label = label;
    EXPECT_TRUE(decide(view, now()).writes.empty()) << label;
  }
  view.pods[0].shard_label = "8-of-32";
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 1u);
  EXPECT_EQ(all<RelabelPod>(decision).at(0).name, pod_of(1));
}

TEST(Tidy, ALivePodOfATerminalJobIsStoppedAndReleased) {
  JobView view = job_in(Phase::kFailed);
  add_pod(view, 1, PodPhase::kRunning);
  const Decision decision = decide(view, now());
  EXPECT_EQ(all<DeletePod>(decision).size(), 1u);
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
}

TEST(Tidy, ALaterAttemptsPodInAnOlderViewOfTheJobIsNotTouched) {
  for (const Phase phase : {Phase::kRunning, Phase::kBackoff, Phase::kSuspended}) {
    JobView view = job_in(phase);
    if (phase == Phase::kRunning) view = at_rest(1);
    view.job.spec.suspend = phase == Phase::kSuspended;
    add_pod(view, 2, PodPhase::kRunning);
    EXPECT_TRUE(decide(view, now()).writes.empty()) << to_string(phase);
    view.pods.pop_back();
    add_ended_pod(view, 2, 0);
    EXPECT_TRUE(decide(view, now()).writes.empty()) << to_string(phase);
  }
}

TEST(Tidy, APodThatIsNamedAfterTheHighestNumberDoesNotUseTheNumbersUp) {
  JobView view = job_in(Phase::kBackoff);
  add_pod(view, 2147483647, PodPhase::kSucceeded);
  view.job.status.begun().next_attempt_time = now();
  EXPECT_EQ(after(view).attempt, view.job.status.attempt + 1);
}

TEST(Tidy, ALaterAttemptsPodRaisesTheNextAttemptAboveItAndAForgedLabelDoesNot) {
  JobView view = job_in(Phase::kPending);
  add_pod(view, 4, PodPhase::kSucceeded);
  EXPECT_EQ(after(view).attempt, 5);
  view.pods[0].name = "my-own-pod";
  view.pods[0].attempt = 2147483647;
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(Tidy, AnotherOwnersPodWithOurLabelIsNeverTouched) {
  for (const Phase phase : {Phase::kBackoff, Phase::kSucceeded, Phase::kCancelled}) {
    JobView view = job_in(phase);
    add_pod(view, 1, PodPhase::kRunning).owner_uid = "someone-else";
    EXPECT_TRUE(decide(view, now()).writes.empty());
  }
}

TEST(Tidy, AnOrphanedPodOfOursIsReleasedAndNotStopped) {
  JobView view = at_rest(2);
  add_pod(view, 1, PodPhase::kRunning).owner_uid.clear();
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 1u);
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
}

TEST(Tidy, StrippedLabelsArePutBackAfterEverythingElse) {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kRunning).job_uid_label.clear();
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 2u);
  EXPECT_EQ(position<WriteStatus>(decision), 0u);
  EXPECT_EQ(all<RelabelPod>(decision).at(0).attempt, 1);
  EXPECT_EQ(all<RelabelPod>(decision).at(0).name, pod_of(1));
}

TEST(Tidy, TheOutcomeOfAPodWithoutLabelsIsRecordedFirst) {
  JobView view = running_job();
  add_ended_pod(view, 1, 0).job_uid_label.clear();
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 2u);
  EXPECT_EQ(all<WriteStatus>(decision).at(0).status.phase, Phase::kSucceeded);
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
}

TEST(Deadlines, AFinishedJobIsDeletedWhenItsTimeToLiveIsOver) {
  for (const Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kCancelled}) {
    JobView view = job_in(phase);  // for 10 s now
    EXPECT_TRUE(decide(view, now()).writes.empty());
    EXPECT_FALSE(decide(view, now()).wake_after);
    view.job.spec.ttl_after_finished = seconds(15);
    EXPECT_TRUE(decide(view, now()).writes.empty());
    EXPECT_EQ(decide(view, now()).wake_after, seconds(5));
    EXPECT_EQ(all<DeleteJob>(decide(view, now() + seconds(5))).size(), 1u);
    view.job.spec.ttl_after_finished = seconds(0);
    add_pod(view, 1, PodPhase::kRunning);
    const Decision decision = decide(view, now());
    EXPECT_EQ(all<DeleteJob>(decision).size(), 1u);
    EXPECT_EQ(position<DeleteJob>(decision), decision.writes.size() - 1) << "its pods come first";
    EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
