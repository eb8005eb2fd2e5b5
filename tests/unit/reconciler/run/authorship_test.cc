// S18 Author: an outcome counts only from a pod that the operator itself made.
#include "reconciler/run/authorship.h"

#include <gtest/gtest.h>

#include "reconciler/run/heartbeat.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// Running its first attempt, whose pod's UID is on record.
JobView recorded_job() {
  JobView view = running_job();
  view.job.status.begun().pod_uid = "pod-uid-1";
  view.job.status.begun().node_name = kNode;
  return view;
}

JobView recorded_job_with_pod(PodPhase phase) {
  JobView view = recorded_job();
  add_pod(view, 1, phase);
  return view;
}

TEST(Author, ThePodsUidIsRecordedWithTheFirstWriteThatIsMadeAnyway) {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kRunning).uid = "made-by-us";
  const Status status = after(view);
  EXPECT_EQ(status.run().pod_uid, "made-by-us");
  EXPECT_EQ(status.run().node_name, kNode) << "the write at the pod's start is that write";
}

TEST(Author, ThePodsUidAloneIsNoReasonToWrite) {
  JobView view = job_with_pod();
  view.job.status = after(view);
  view.job.status.begun().pod_uid.clear();
  view.job.status.begun().start_time = view.pods[0].intent = now() - seconds(90);
  EXPECT_TRUE(decide(view, now()).writes.empty());
}

TEST(Author, AnEndedAttemptsPodUidStandsInHistory) {
  JobView view = running_job();
  add_ended_pod(view, 1, 1).uid = "made-by-us";
  const Status status = after(view);
  EXPECT_EQ(status.history.back().pod_uid, "made-by-us");
  EXPECT_EQ(status.run().pod_uid, "made-by-us") << "until the next attempt begins";
}

TEST(Author, TheNextAttemptHasNoPodUidYet) {
  JobView view = recorded_job_with_pod(PodPhase::kRunning);
  view.observed.nodes[kNode].silent_for = view.job.spec.lost_after;
  const Status status = after(view);
  ASSERT_EQ(status.attempt, 2);
  EXPECT_EQ(status.run().pod_uid, "");
  EXPECT_EQ(status.history.back().pod_uid, "pod-uid-1");
}

TEST(Author, APodThatWasAStrangerStaysOneWhateverItsOwnerAndItsMarkSayLater) {
  JobView view = running_job();
  auto& run = view.job.status.runs.at(0);
  run.pod_uid.clear();
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.intent = run.start_time;
  ASSERT_TRUE(current_pod(view, 0));
  view.begun().observed.strangers = {pod.uid};
  EXPECT_FALSE(current_pod(view, 0));
  EXPECT_FALSE(current_pods(view).at(0));
}

TEST(Author, APodOfTheRightNameAndTheWrongUidNeverCounts) {
  for (const bool on_record : {true, false}) {
    JobView view = job_before_its_pod();
    (on_record ? view.job.status.begun().pod_uid : view.begun().observed.pod_uid) = "made-by-us";
    view.begun().observed.pod_existed = !on_record;
    add_ended_pod(view, 1, 0).uid = "forged";
    const Status status = after(view);
    EXPECT_EQ(status.phase, Phase::kRunning);
    EXPECT_EQ(status.attempt, 2) << "the attempt's own pod is gone";
    EXPECT_EQ(status.history.back().reason, "PodGone");
    EXPECT_EQ(status.history.back().pod_uid, "made-by-us");
  }
}

TEST(Author, AForgedPodUnderTheAttemptsNameIsStoppedAndReleased) {
  JobView view = job_before_its_pod();
  add_pod(view, 1, PodPhase::kRunning).intent.reset();
  const Decision decision = settle(view);
  EXPECT_EQ(all<DeletePod>(decision).at(0).name, pod_of(1));
  EXPECT_EQ(all<ReleasePod>(decision).at(0).name, pod_of(1));
  EXPECT_EQ(all<CreatePod>(decision).at(0).name, pod_of(1));
  EXPECT_LT(position<DeletePod>(decision), position<CreatePod>(decision));
}

// Nobody has the UID on record: the mark of the intent is not to be known before it stands there.
TEST(Author, BeforeItsUidIsKnownAPodMustBearTheMarkOfItsIntentAndTheJobAsItsOwner) {
  for (const bool marked : {true, false}) {
    for (const bool owned : {true, false}) {
      JobView view = running_job();
      view.begun().observed.no_pod_for = seconds(17);
      PodView& pod = add_ended_pod(view, 1, 0);
      if (!marked) *pod.intent += Duration(1);
      if (!owned) pod.owner_uid.clear();
      const Phase phase = after(view).phase;
      EXPECT_EQ(phase, marked && owned ? Phase::kSucceeded : Phase::kRunning) << marked << owned;
    }
  }
}

// Who reads the mark of the intent must not choose what the end of the attempt means.
TEST(Author, APodWithTheMarkThatTheJobDoesNotOwnIsNoMatterOfTheFailurePolicy) {
  for (const PolicyAction action : {PolicyAction::kFailJob, PolicyAction::kIgnore}) {
    JobView view = running_job();
    view.job.spec.pod_failure_policy = {on_exit_code(action, {42})};
    add_ended_pod(view, 1, 42).owner_uid.clear();
    const Status status = after(view);
    EXPECT_EQ(status.history.back().reason, "OwnerRemoved");
    EXPECT_FALSE(status.condition("FailureTarget"));
    EXPECT_EQ(status.disruptions, 1);
  }
}

TEST(Author, ThePodIsAskedForWithTheMarkOfItsIntent) {
  const Decision first = decide(new_job(), now());
  EXPECT_EQ(all<CreatePod>(first).at(0).intent, after(new_job()).run().start_time);
  JobView again = job_before_its_pod();
  EXPECT_EQ(all<CreatePod>(decide(again, now())).at(0).intent, again.job.status.run().start_time);
}

TEST(Author, ARunningPodWhoseOwnerWasTakenOffIsGivenUpAndStopped) {
  JobView view = recorded_job_with_pod(PodPhase::kRunning);
  view.pods[0].owner_uid.clear();
  EXPECT_TRUE(decide(view, now()).confirm);
  const Decision decision = settle(view);
  const Status status = all<WriteStatus>(decision).at(0).status;
  EXPECT_EQ(status.history.back().reason, "OwnerRemoved");
  EXPECT_EQ(status.attempt, 2);
  EXPECT_EQ(all<DeletePod>(decision).at(0).uid, "pod-uid-1");
  EXPECT_EQ(all<ReleasePod>(decision).at(0).uid, "pod-uid-1");
}

TEST(Author, APodWhoseOwnerWasTakenOffStillIsTheOldPodThatTheNextOneWaitsFor) {
  JobView view = recorded_job_with_pod(PodPhase::kRunning);
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.pods[0].owner_uid.clear();
  view.job.status = after(view);
  ASSERT_EQ(view.job.status.phase, Phase::kBackoff);
  EXPECT_EQ(view.job.status.waiting->reason, "OldPodNotEnded");
  view.job.status.begun().next_attempt_time = now();
  delete_pod(view.pods[0], seconds(1));
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  EXPECT_EQ(after(view).attempt, 1);
  view.pods[0].phase = PodPhase::kFailed;
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(Author, AnEarlierAttemptsPodIsStoppedThoughItsOwnerWasTakenOff) {
  JobView view = running_job(2);
  add_pod(view, 2, PodPhase::kRunning);
  view.job.status = after(view);
  HistoryEntry entry;
  entry.attempt = 1;
  entry.pod_uid = "pod-uid-1";
  view.job.status.history.push_back(entry);
  add_pod(view, 1, PodPhase::kRunning).owner_uid.clear();
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 2u);
  EXPECT_EQ(all<DeletePod>(decision).at(0).uid, "pod-uid-1");
  EXPECT_EQ(all<ReleasePod>(decision).at(0).uid, "pod-uid-1");
}

// `kubectl delete --cascade=orphan` takes the owner off, too, and means the pod to run on.
TEST(Author, AJobThatIsBeingDeletedReleasesAnOrphanAndStopsNothing) {
  JobView view = recorded_job_with_pod(PodPhase::kRunning);
  view.job.deleting = true;
  view.pods[0].owner_uid.clear();
  EXPECT_TRUE(all<DeletePod>(settle(view)).empty());
  EXPECT_EQ(all<ReleasePod>(settle(view)).size(), 1u);
}

TEST(Author, ACancelWaitsForAPodWhoseOwnerWasTakenOff) {
  JobView view = job_in(Phase::kCancelling);
  view.job.spec.cancel = true;
  view.job.status.begun().pod_uid = "pod-uid-1";
  add_pod(view, 1, PodPhase::kRunning).owner_uid.clear();
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u);
}

TEST(Author, TheOutcomeOfAnEndedPodCountsByItsUidThoughItsOwnerWasTakenOff) {
  JobView view = recorded_job();
  add_ended_pod(view, 1, 0).owner_uid.clear();
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

// ---- With a heartbeat.

JobView held_job(const std::string& holder_uid) {
  JobView view = running_job();
  view.job.spec.heartbeat = Heartbeat{seconds(30), std::nullopt};
  add_ended_pod(view, 1, 0).containers[0].worker = true;
  LeaseView lease;
  lease.uid = "lease-uid";
  lease.version = 70;
  lease.attempt = 1;
  lease.holder = lease.granted = pod_of(1) + "/" + holder_uid;
  lease.renewed = true;
  view.begun().lease = lease;
  return view;
}

TEST(Author, WithAHeartbeatThePodThatHeldTheLeaseSucceeds) {
  JobView view = held_job("pod-uid-1");
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
  view.begun().lease->holder.clear();
  EXPECT_EQ(after(view).phase, Phase::kSucceeded) << "it was granted to it last";
}

TEST(Author, WithAHeartbeatThePodMadeAnewUnderTheNameOfTheHolderIsNotTheAttempts) {
  for (const bool granted_only : {false, true}) {
    JobView view = held_job("the-pod-that-was-deleted");
    if (granted_only) view.begun().lease->holder.clear();
    view.begun().observed.own_intent = true;
    const Status status = after(view);
    EXPECT_EQ(status.phase, Phase::kRunning);
    EXPECT_EQ(status.history.at(0).reason, "PodGone");
    EXPECT_EQ(status.history.at(0).pod_uid, "the-pod-that-was-deleted");
  }
}

TEST(Author, WithAHeartbeatAPodThatWasNeverGrantedTheLeaseDoesNotSucceed) {
  JobView view = held_job("pod-uid-1");
  view.job.status.begun().pod_uid = "pod-uid-1";
  view.begun().lease->holder.clear();
  view.begun().lease->granted = pod_of(7) + "/another";
  EXPECT_TRUE(decide(view, now()).confirm) << "the Lease in the view may be older than the pod";
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_EQ(after(view).history.at(0).reason, "LeaseNotGranted");
  EXPECT_EQ(after(view).history.at(0).outcome, Outcome::kLost);
  view.begun().lease->attempt = 0;
  EXPECT_EQ(after(view).history.at(0).reason, "LeaseNotGranted");
}

TEST(Author, WithAHeartbeatWhoseLeaseIsGoneTheKnownUidDecides) {
  JobView view = held_job("pod-uid-1");
  view.begun().lease.reset();
  EXPECT_EQ(after(view).history.at(0).reason, "LeaseNotGranted");
  view.job.status.begun().pod_uid = "pod-uid-1";
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(Author, AFailureNeedsNoLease) {
  JobView view = held_job("pod-uid-1");
  view.pods.clear();
  add_ended_pod(view, 1, 3);
  view.begun().lease.reset();
  EXPECT_EQ(after(view).history.at(0).outcome, Outcome::kFailed);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
