// What status reports while a job waits, and how seldom it is written.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::milliseconds;

// Its pod was created and started just now.
JobView just_started() {
  JobView view = running_job();
  view.job.status.start_time = view.job.status.begun().start_time = now();
  view.job.status.waiting->deadline = now() + seconds(600);
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.created = now();
  pod.containers[0].started_at = now();
  return view;
}

TEST(Waiting, APodThatRunsCostsItsFifthWriteOnlyAfterThreeSeconds) {
  const JobView view = just_started();
  const Decision early = decide(view, now() + milliseconds(400));
  EXPECT_TRUE(early.writes.empty());
  EXPECT_EQ(early.wake_after, milliseconds(2600));
  EXPECT_TRUE(decide(view, now() + milliseconds(2999)).writes.empty());
  const Status status = after(view, now() + seconds(3));
  EXPECT_EQ(status.run().node_name, kNode);
  EXPECT_EQ(status.run().start_time, now());
  EXPECT_EQ(status.waiting->reason, "PodRunning");
  EXPECT_FALSE(status.waiting->deadline);
}

TEST(Waiting, APodWhoseEndIsSeenWithinThreeSecondsCostsItsOutcomeAndItsFinalizerOnly) {
  JobView view = just_started();
  view.pods.clear();
  add_ended_pod(view, 1, 0);
  const Decision decision = decide(view, now() + milliseconds(2900));
  ASSERT_EQ(decision.writes.size(), 2u);
  EXPECT_EQ(position<WriteStatus>(decision), 0u);
  EXPECT_EQ(all<ReleasePod>(decision).size(), 1u);
}

TEST(Waiting, AtRestNothingIsWritten) {
  JobView view = just_started();
  view.job.status = after(view, now() + seconds(3));
  for (int i = 2; i < 100; ++i) {
    view.observed.nodes[kNode].silent_for = seconds(i % 11);
    EXPECT_TRUE(decide(view, now() + seconds(i)).writes.empty());
  }
}

TEST(Waiting, APodWhoseNextContainerDoesNotStartSaysWhich) {
  JobView view = just_started();
  view.job.status = after(view, now() + seconds(3));
  PodView& pod = view.pods[0];
  pod.containers.clear();
  ContainerView& main = add_container(pod, "main", Progress::kWaits);
  main.waiting_reason = "PodInitializing";
  main.being_created = true;
  add_container(pod, "fetch", Progress::kEnded).init = true;
  // Between two containers there is always a moment.
  view.begun().observed.still_for = seconds(9);
  EXPECT_TRUE(decide(view, now() + seconds(100)).writes.empty());
  EXPECT_EQ(decide(view, now() + seconds(100)).wake_after, seconds(1));
  view.begun().observed.still_for = seconds(10);
  EXPECT_EQ(after(view, now() + seconds(100)).waiting->reason, "PodStarting");
  pod.containers[0].waiting_reason = "ErrImagePull";
  pod.containers[0].being_created = false;
  pod.containers[0].waiting_message = "not found";
  view.begun().observed.still_for = seconds(1);
  const Waiting waiting = *after(view, now() + seconds(100)).waiting;
  EXPECT_EQ(waiting.reason, "ErrImagePull");
  EXPECT_EQ(waiting.message, "container main: not found");
  EXPECT_EQ(waiting.next_action,
            "attempt 1 ends as StartTimeout unless its next container runs by then");
  EXPECT_EQ(waiting.deadline, now() + seconds(100 + 599));
}

TEST(Waiting, AFinishedJobIsAtRest) {
  for (const Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kCancelled}) {
    JobView view = job_in(phase);
    add_ended_pod(view, 1, 0).has_finalizer = false;
    EXPECT_TRUE(decide(view, now()).writes.empty());
    EXPECT_FALSE(decide(view, now()).wake_after);
  }
}

TEST(Waiting, AFinishedJobThatIsEditedChangesItsObservedGenerationAlone) {
  JobView view = job_in(Phase::kSucceeded);
  view.job.generation = 2;
  Status expected = view.job.status;
  expected.observed_generation = 2;
  expected.settled = true;  // an earlier version has written its end
  Status status = after(view);
  EXPECT_EQ(status.conditions.size(), 1u) << "for kstatus";
  status.conditions.clear();
  EXPECT_EQ(status, expected);
}

TEST(Waiting, ItIsWrittenAtMostOnceASecond) {
  JobView view = just_started();
  view.observed.since_write = milliseconds(300);
  const Decision decision = decide(view, now() + seconds(5));
  EXPECT_TRUE(decision.writes.empty());
  EXPECT_EQ(decision.wake_after, milliseconds(700));
  view.observed.since_write = seconds(1);
  EXPECT_EQ(decide(view, now() + seconds(5)).writes.size(), 1u);
}

TEST(Waiting, ADeadlineThatMovesByNoiseIsNotWrittenAgain) {
  JobView view = just_started();
  delete_pod(view.pods[0], seconds(0));
  view.job.status = after(view, now() + seconds(5));
  EXPECT_EQ(view.job.status.waiting->reason, "PodTerminating");
  *view.pods[0].deletion += milliseconds(1500);
  EXPECT_TRUE(decide(view, now() + seconds(6)).writes.empty());
  *view.pods[0].deletion += seconds(1);
  EXPECT_EQ(decide(view, now() + seconds(6)).writes.size(), 1u);
}

TEST(Waiting, AFastKubeletClockDoesNotHideTheStart) {
  JobView view = just_started();
  view.pods[0].containers[0].started_at = now() + seconds(3600);
  EXPECT_EQ(after(view, now() + seconds(3)).waiting->reason, "PodRunning");
}

TEST(Waiting, AnImageThatCannotBePulledIsReported) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kPending);
  pod.containers[0].waiting_reason = "ImagePullBackOff";
  pod.containers[0].waiting_message = "Back-off pulling image";
  EXPECT_EQ(after(view).waiting->reason, "ImagePullBackOff");
  pod.containers[0].waiting_reason = "ContainerCreating";
  pod.containers[0].being_created = true;
  EXPECT_EQ(after(view).waiting->reason, "PodStarting");
}

TEST(Waiting, ASilentNodeIsReportedAfterHalfTheWindowAndThatMomentIsWokenFor) {
  JobView view = just_started();
  view.job.status = after(view, now() + seconds(1));
  NodeObservation& node = view.observed.nodes[kNode];
  node.silent_for = seconds(8);
  EXPECT_EQ(decide(view, now() + seconds(8)).wake_after, seconds(12));
  node.silent_for = seconds(20);
  const Status status = after(view, now() + seconds(20));
  EXPECT_EQ(status.waiting->reason, "NodeSilent");
  EXPECT_EQ(status.waiting->deadline, now() + seconds(40));
}

TEST(Waiting, ASilentNodeIsReportedUnderTheBreakerTooWithItsLaterDeadline) {
  JobView view = just_started();
  view.job.status = after(view, now() + seconds(1));
  view.observed.nodes[kNode].silent_for = seconds(30);
  view.observed.nodes[kNode].breaker = true;
  const Status status = after(view, now() + seconds(30));
  EXPECT_EQ(status.waiting->reason, "NodeSilent");
  EXPECT_EQ(status.waiting->deadline, now() + seconds(80));
}

TEST(Waiting, TheEarliestDeadlineIsReported) {
  JobView view = just_started();
  view.job.spec.attempt_deadline = seconds(30);
  EXPECT_EQ(after(view, now() + seconds(3)).waiting->deadline, now() + seconds(30));
  view.job.spec.active_deadline = seconds(20);
  EXPECT_EQ(after(view, now() + seconds(3)).waiting->deadline, now() + seconds(20));
  view.observed.nodes[kNode].missing_for = seconds(35);
  EXPECT_EQ(after(view, now() + seconds(1)).waiting->reason, "NodeGone");
  EXPECT_EQ(after(view, now() + seconds(1)).waiting->deadline, now() + seconds(6));
  view.job.spec.attempt_deadline = seconds(4);
  EXPECT_EQ(after(view, now() + seconds(1)).waiting->deadline, now() + seconds(4));
}

TEST(Waiting, BackoffSaysWhenTheNextAttemptStartsAlsoWhenTheJobsDeadlineIsMoved) {
  JobView view = job_in(Phase::kRunning);
  view.job.spec.retry_backoff.jitter_percent = 0;
  view.job.spec.active_deadline = seconds(105);
  add_ended_pod(view, 1, 1);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.waiting->reason, "RetryBackoff");
  EXPECT_EQ(view.job.status.waiting->deadline, now() + seconds(5));
  view.job.spec.active_deadline.reset();
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(10));
}

TEST(Waiting, TextsOfOthersAreCutToWhatTheSchemaTakes) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kPending);
  pod.unschedulable = std::string(20000, 'x');
  EXPECT_LE(after(view).waiting->message.size(), 1024u);
  pod.unschedulable.clear();
  pod.containers[0].waiting_reason = std::string(5000, 'r');
  EXPECT_LE(after(view).waiting->reason.text().size(), 128u);

  view.pods.clear();
  view.begun().observed.own_intent = true;
  std::string accents;
  for (int i = 0; i < 9000; ++i) accents += "\xc3\xa9";
  view.begun().observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kRefused, accents, seconds(5)};
  const WriteStatus refused = written(view);
  EXPECT_LE(refused.status.waiting->message.size(), 1024u);
  const std::string& text = refused.status.waiting->message;
  EXPECT_EQ(text.substr(text.size() - 4), "\xa9...") << "not cut inside a character";
  view.job.status = refused.status;
  EXPECT_TRUE(decide(view, now()).writes.empty()) << "what was cut is not new each time";

  JobView failed = running_job();
  PodView& ended = add_ended_pod(failed, 1, 1);
  ended.reason = std::string(5000, 'r');
  ended.message = std::string(50000, 'm');
  const WriteStatus write = written(failed);
  EXPECT_LE(write.status.history[0].reason.text().size(), 128u);
  EXPECT_LE(write.events.at(0).note.size(), 1024u);
  failed.job.spec.backoff_limit = 0;
  EXPECT_LE(after(failed).condition("Failed")->message.size(), 1024u);
}

TEST(Waiting, AContainerInTroubleBesideOneThatRunsIsReported) {
  JobView view = just_started();
  ContainerView& side = add_container(view.pods[0], "side", Progress::kWaits);
  side.waiting_reason = "ImagePullBackOff";
  side.waiting_message = "Back-off pulling image \"side:9\"";
  const Status status = after(view, now() + seconds(3));
  EXPECT_EQ(status.waiting->reason, "ImagePullBackOff");
  EXPECT_THAT(status.waiting->message,
              HasSubstr("container side: Back-off pulling image \"side:9\""));
  EXPECT_FALSE(status.waiting->deadline) << "no limit counts while a container runs";
  view.job.status = status;
  EXPECT_TRUE(decide(view, now() + seconds(9)).writes.empty());
  view.pods[0].containers[1].waiting_reason = "ContainerCreating";
  view.pods[0].containers[1].being_created = true;
  EXPECT_EQ(after(view, now() + seconds(9)).waiting->reason, "PodRunning");
}

TEST(Waiting, OfManyRunsTheOneWithAContainerInTroubleIsReported) {
  JobView view = job_of_runs(3, 3, 3);
  ContainerView& side = add_container(view.pods[1], "side", Progress::kWaits);
  side.waiting_reason = "CreateContainerConfigError";
  side.waiting_message = "configmap \"settings\" not found";
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, "CreateContainerConfigError");
  EXPECT_TRUE(status.waiting->message.starts_with("run 1: container side: configmap"));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
