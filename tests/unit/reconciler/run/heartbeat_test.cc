// The job's Lease: its hand-over in two steps, and what its silence and its marks bring.
#include "reconciler/run/heartbeat.h"

#include <gtest/gtest.h>

#include "core/invariant.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr seconds kDuration{30};

// Running its second attempt with a pod, and a Lease that this pod holds and renews.
JobView held_job() {
  JobView view = running_job(2);
  view.job.spec.heartbeat = Heartbeat{kDuration, std::nullopt};
  PodView& pod = add_pod(view, 2, PodPhase::kRunning);
  view.job.status.begun().node_name = kNode;
  LeaseView lease;
  lease.uid = "lease-uid";
  lease.version = 70;
  lease.attempt = 2;
  lease.holder = lease.granted = holder_identity(pod);
  lease.acquired = now() - seconds(95);
  lease.renewed = true;
  view.begun().lease = lease;
  return view;
}

// The same, but the Lease is still the first attempt's.
JobView lease_of_the_first() {
  JobView view = held_job();
  view.begun().lease->attempt = 1;
  view.begun().lease->holder = view.begun().lease->granted = pod_of(1) + "/uid-of-1";
  return view;
}

PodView& first_pod(JobView& view) {
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.uid = "uid-of-1";
  pod.deletion = now() - seconds(5);
  ContainerView worker;
  worker.name = "main";
  worker.worker = worker.started = true;
  pod.containers = {worker};
  return pod;
}

std::vector<WriteLease> lease_writes(const JobView& view) { return all<WriteLease>(settle(view)); }

// Its pod was made by the process that recorded it; nobody has had its Lease.
JobView first_attempt() {
  JobView view = held_job();
  view.job.status.attempt = view.job.status.begun().attempt = 1;
  view.job.status.begun().pod_name = pod_of(1);
  view.pods.clear();
  add_pod(view, 1, PodPhase::kPending);
  view.begun().lease.reset();
  view.begun().observed.own_intent = true;
  return view;
}

TEST(LeaseHandOver, TheFirstAttemptsPodIsGrantedANewLeaseInOneWrite) {
  const JobView view = first_attempt();
  const PodView& pod = view.pods[0];
  const auto writes = lease_writes(view);
  EXPECT_EQ(only(writes).uid, "");
  EXPECT_EQ(writes[0].attempt, 1);
  EXPECT_EQ(writes[0].holder, holder_identity(pod));
  EXPECT_EQ(writes[0].granted, writes[0].holder);
}

TEST(LeaseHandOver, ALeaseThatIsGoneMayHaveHadAHolderSoItIsMadeForNobody) {
  JobView view = held_job();
  view.begun().lease.reset();
  const auto writes = lease_writes(view);
  EXPECT_EQ(only(writes).holder, "");
  EXPECT_EQ(writes[0].attempt, 2);
  EXPECT_EQ(writes[0].granted, "unknown");
}

TEST(LeaseHandOver, AFirstAttemptsLeaseThatWasDeletedMayHaveHadAHolderToo) {
  JobView written_before = first_attempt();
  written_before.begun().observed.lease_asked = true;
  JobView taken_over = first_attempt();
  taken_over.begun().observed.took_over = true;
  JobView anothers_intent = first_attempt();
  anothers_intent.begun().observed.own_intent = false;
  for (const JobView& view : {written_before, taken_over, anothers_intent}) {
    const auto writes = lease_writes(view);
    EXPECT_EQ(only(writes).holder, "");
    EXPECT_EQ(writes[0].granted, "unknown");
  }
}

TEST(LeaseHandOver, AWorkerThatMayComeBackInItsPlaceHasNotStopped) {
  JobView view = lease_of_the_first();
  PodView& pod = first_pod(view);
  pod.containers[0].terminated = Terminated{};
  pod.containers[0].may_restart = true;
  EXPECT_EQ(lease_writes(view).at(0).holder, "");
  pod.phase = PodPhase::kFailed;
  EXPECT_NE(lease_writes(view).at(0).holder, "") << "its kubelet says that nothing comes back";
  pod.disruption_target = true;
  EXPECT_EQ(lease_writes(view).at(0).holder, "") << "that may be the pod collector's word";
}

TEST(LeaseHandOver, AnEndThatTheKubeletDidNotSeeIsNoProofThatAWorkerStopped) {
  JobView view = lease_of_the_first();
  PodView& pod = first_pod(view);
  pod.phase = PodPhase::kFailed;
  pod.containers[0].terminated = Terminated{};
  pod.containers[0].terminated->was_seen = false;
  pod.containers[0].terminated->exit_code = 137;
  EXPECT_EQ(lease_writes(view).at(0).holder, "");
}

TEST(LeaseHandOver, ItIsTakenFirstWhileItsLastPodMayRun) {
  for (const bool pod_is_there : {false, true}) {
    JobView view = lease_of_the_first();
    if (pod_is_there) first_pod(view);
    const auto writes = lease_writes(view);
    ASSERT_EQ(writes.size(), 1u) << "a pod that is gone may run on";
    EXPECT_EQ(writes[0].holder, "");
    EXPECT_EQ(writes[0].attempt, 2);
    EXPECT_EQ(writes[0].granted, pod_of(1) + "/uid-of-1");
    EXPECT_EQ(writes[0].version, 70u);
    EXPECT_EQ(writes[0].uid, "lease-uid");
  }
}

TEST(LeaseHandOver, ItIsTakenInTheDecisionThatRecordsTheNextAttempt) {
  JobView view = held_job();
  view.begun().observed.lease.silent_for = kDuration;
  const Decision decision = settle(view);
  const auto writes = all<WriteLease>(decision);
  EXPECT_EQ(only(writes).attempt, 3);
  EXPECT_EQ(writes[0].holder, "");
  EXPECT_LT(position<WriteStatus>(decision), position<WriteLease>(decision));
}

TEST(LeaseHandOver, ItIsGrantedAWholeDurationAfterItWasTaken) {
  JobView view = lease_of_the_first();
  view.begun().lease->attempt = 2;
  view.begun().lease->holder.clear();
  view.begun().lease->renewed = false;
  view.begun().observed.lease.taken_for = kDuration - std::chrono::milliseconds(1);
  const Decision waits = settle(view);
  EXPECT_TRUE(all<WriteLease>(waits).empty());
  EXPECT_EQ(waits.wake_after, std::chrono::milliseconds(1));
  EXPECT_EQ(after(view).waiting->reason, "LeaseHeld");
  view.begun().observed.lease.taken_for = kDuration;
  const auto writes = lease_writes(view);
  EXPECT_EQ(only(writes).holder, holder_identity(view.pods[0]));
  EXPECT_EQ(writes[0].granted, writes[0].holder);
}

TEST(LeaseHandOver, ItGoesOnAtOnceWhenItsLastPodIsKnownToBeStopped) {
  JobView ended = lease_of_the_first();
  first_pod(ended).containers[0].terminated = Terminated{};
  JobView unbound = lease_of_the_first();
  first_pod(unbound).node_name.clear();
  for (const JobView& view : {ended, unbound}) {
    const auto writes = lease_writes(view);
    EXPECT_EQ(only(writes).attempt, 2);
    EXPECT_NE(writes[0].holder, "");
  }
}

TEST(LeaseHandOver, AWriteThatOnlyABugCanPlanIsRefused) {
  JobView view = lease_of_the_first();
  const auto& run = view.job.status.run();
  const PodView& pod = view.pods[0];
  const std::string holder = holder_identity(pod);
  const auto& lease = view.begun().lease;
  const WriteLease grant{lease->uid, lease->version, 2, holder, holder};
  EXPECT_NO_THROW(check_lease_write(grant, run, &pod, lease));
  EXPECT_NO_THROW(check_lease_write(grant, run, &pod, std::nullopt));

  WriteLease of_another_attempt = grant;
  of_another_attempt.attempt = 3;
  EXPECT_THROW(check_lease_write(of_another_attempt, run, &pod, lease), BrokenInvariant);
  EXPECT_THROW(check_lease_write(of_another_attempt, run, &pod, std::nullopt), BrokenInvariant)
      << "the first write too";
  auto later = lease;
  later->attempt = 3;
  EXPECT_THROW(check_lease_write(grant, run, &pod, later), BrokenInvariant) << "the attempt falls";

  EXPECT_THROW(check_lease_write(grant, run, nullptr, lease), BrokenInvariant) << "without a pod";
  PodView other = pod;
  other.name = pod_of(1);
  EXPECT_THROW(check_lease_write(grant, run, &other, lease), BrokenInvariant);
  other = pod;
  other.uid.clear();
  WriteLease nameless = grant;
  nameless.holder = holder_identity(other);
  EXPECT_THROW(check_lease_write(nameless, run, &other, lease), BrokenInvariant) << "without a UID";
  WriteLease to_another = grant;
  to_another.holder = pod_of(1) + "/uid-of-1";
  EXPECT_THROW(check_lease_write(to_another, run, &pod, lease), BrokenInvariant);
}

// The child starts after an acknowledged renewal, and the write's version says that none came.
TEST(LeaseHandOver, AHolderThatNeverRenewedHasNothingToStop) {
  JobView view = lease_of_the_first();
  view.begun().lease->renewed = false;
  const auto grants = lease_writes(view);
  EXPECT_EQ(only(grants).holder, holder_identity(view.pods[0]));
  EXPECT_EQ(grants[0].version, view.begun().lease->version);

  view.pods.clear();
  view.begun().observed.own_intent = true;
  const auto takes = lease_writes(view);
  ASSERT_EQ(takes.size(), 1u) << "it is refused from now on";
  EXPECT_EQ(takes[0].holder, "");
  EXPECT_EQ(takes[0].granted, "") << "so that nobody waits for it";

  // As the Lease then stands: taken, and granted to nobody.
  view.begun().lease->attempt = 2;
  view.begun().lease->holder = view.begun().lease->granted = "";
  const PodView& pod = add_pod(view, 2, PodPhase::kRunning);
  EXPECT_EQ(lease_writes(view).at(0).holder, holder_identity(pod));
}

TEST(LeaseHandOver, OneThatWasTakenSaysNothingOfItsLastHoldersRenewals) {
  JobView view = lease_of_the_first();
  view.begun().lease->attempt = 2;
  view.begun().lease->holder.clear();
  view.begun().lease->renewed = false;
  EXPECT_TRUE(lease_writes(view).empty());
}

TEST(LeaseHandOver, ItGoesOnAtOnceWhenItsLastPodWasSeenToStopAndIsGone) {
  JobView view = lease_of_the_first();
  view.begun().observed.lease.granted_stopped = true;
  EXPECT_NE(lease_writes(view).at(0).holder, "");
}

TEST(LeaseHandOver, AnUnboundPodThatNobodyDeletesMayStillBeBound) {
  JobView view = lease_of_the_first();
  PodView& pod = first_pod(view);
  pod.node_name.clear();
  pod.deletion.reset();
  EXPECT_EQ(lease_writes(view).at(0).holder, "");
}

TEST(LeaseHandOver, ThatAnotherContainerOrThePodHasEndedProvesNothing) {
  JobView view = lease_of_the_first();
  PodView& pod = first_pod(view);
  pod.phase = PodPhase::kFailed;  // as the garbage collector says of a pod on a lost node
  ContainerView other = pod.containers[0];
  other.worker = false;
  other.terminated = Terminated{};
  pod.containers.push_back(other);
  EXPECT_EQ(lease_writes(view).at(0).holder, "");
}

TEST(LeaseHandOver, ALeaseOfALaterAttemptIsLeftAlone) {
  JobView view = held_job();
  view.begun().lease->attempt = 3;
  view.begun().lease->holder = "train-3/other";
  EXPECT_TRUE(lease_writes(view).empty());
}

TEST(LeaseHandOver, ARefusedWriteIsReportedAndTriedAgainLaterAndHoldsUpNoVerdict) {
  JobView view = lease_of_the_first();
  view.job.spec.start_deadline = seconds(300);
  view.begun().observed.lease_refusal = LeaseRefusal{"exceeded quota: leases", seconds(5)};
  const Decision waits = settle(view);
  EXPECT_TRUE(all<WriteLease>(waits).empty());
  EXPECT_LE(*waits.wake_after, seconds(5));
  EXPECT_EQ(after(view).waiting->reason, "LeaseWriteRefused");
  EXPECT_EQ(after(view).waiting->message, "exceeded quota: leases");
  view.begun().observed.lease_refusal->retry_in = seconds(0);
  EXPECT_EQ(lease_writes(view).size(), 1u);
  view.pods[0].created = now() - seconds(330);
  view.begun().observed.lease_refusal->retry_in = seconds(5);
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kStartTimeout);
}

TEST(LeaseHandOver, AJobWithoutHeartbeatHasNone) {
  JobView view = held_job();
  view.job.spec.heartbeat.reset();
  view.begun().lease.reset();
  EXPECT_TRUE(lease_writes(view).empty());
}

TEST(Heartbeat, AHolderThatIsSilentForTheDurationIsLost) {
  JobView view = held_job();
  view.begun().observed.lease.silent_for = kDuration - seconds(1);
  EXPECT_EQ(after(view).attempt, 2);
  EXPECT_LE(*settle(view).wake_after, seconds(1));
  view.begun().observed.lease.silent_for = kDuration;
  EXPECT_TRUE(decide(view, now()).confirm);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.history.back().outcome, Outcome::kLost);
  EXPECT_EQ(write.status.history.back().reason, "HolderSilent");
  EXPECT_EQ(write.ended.at(0).orphan_class, "holder_silent");
  EXPECT_EQ(write.status.disruptions, 1);
  view.begun().observed.lease.breaker = true;
  EXPECT_EQ(after(view).attempt, 2) << "most fell silent together: one window more";
  view.begun().observed.lease.silent_for = 2 * kDuration;
  EXPECT_EQ(after(view).attempt, 3);
}

TEST(Heartbeat, AFreshOneOutweighsASilentNodeAndNothingElseDoes) {
  JobView view = held_job();
  view.observed.nodes[kNode].silent_for = seconds(3600);
  EXPECT_EQ(after(view).attempt, 2);
  view.begun().lease->ended = true;
  EXPECT_EQ(after(view).attempt, 3) << "the child has ended: the node decides";
  view.begun().lease->ended = false;
  view.begun().lease->renewed = false;
  EXPECT_EQ(after(view).attempt, 3);
  view.begun().lease->renewed = true;
  view.begun().lease->holder = "another/one";
  EXPECT_EQ(after(view).attempt, 3);
}

TEST(Heartbeat, AKubeletHasAWholeWindowToReportTheEndOfAWorkerThatSpokeForItself) {
  JobView view = held_job();
  view.begun().lease->ended = true;
  view.observed.nodes[kNode].silent_for = seconds(3600);
  view.begun().observed.lease.ended_for = view.job.spec.lost_after - seconds(1);
  EXPECT_EQ(after(view).attempt, 2);
  view.begun().observed.lease.ended_for = view.job.spec.lost_after;
  EXPECT_EQ(after(view).attempt, 3);
}

TEST(Heartbeat, OnceItsChildHasEndedSilenceIsNoSign) {
  JobView view = held_job();
  view.begun().lease->ended = true;
  view.begun().observed.lease.silent_for = seconds(600);
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(Heartbeat, AWorkerThatWasSeenToEndOwesNoRenewalWhileAnotherContainerWorksOn) {
  for (const bool renewed : {true, false}) {
    JobView view = held_job();
    view.begun().lease->renewed = renewed;
    view.begun().lease->acquired = now() - seconds(5000);
    view.pods[0].created = now() - seconds(5000);
    ContainerView other = view.pods[0].containers[0];
    other.name = "other";
    view.pods[0].containers[0].worker = true;
    view.pods[0].containers[0].terminated = Terminated{};
    view.pods[0].containers.push_back(other);
    view.begun().observed.lease.silent_for = seconds(600);
    EXPECT_EQ(after(view).attempt, 2) << renewed;
    EXPECT_EQ(after(view).waiting->reason, "PodRunning");
  }
}

TEST(Heartbeat, APodThatNeverRenewedEndsAtItsStartDeadlineCountedFromTheGrant) {
  JobView view = held_job();
  view.begun().lease->renewed = false;
  view.job.spec.start_deadline = seconds(60);
  view.pods[0].created = now() - seconds(600);
  view.begun().lease->acquired = now() - seconds(59);
  EXPECT_EQ(after(view).attempt, 2);
  EXPECT_EQ(after(view).waiting->reason, "HeartbeatAwaited");
  view.begun().lease->acquired = now() - seconds(60);
  view.observed.asked = now() - seconds(1);
  EXPECT_EQ(after(view).attempt, 2) << "it may have renewed since the live read";
  view.observed.asked.reset();
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.history.back().outcome, Outcome::kStartTimeout);
  EXPECT_EQ(write.ended.at(0).orphan_class, "pod_never_started");
}

TEST(Heartbeat, APodThatNeverRenewedIsWatchedFor15SecondsHoweverLongTheLease) {
  JobView view = held_job();
  view.begun().lease->renewed = false;
  view.job.spec.start_deadline = seconds(60);
  view.job.spec.heartbeat->lease_duration = seconds(300);
  view.pods[0].created = view.begun().lease->acquired.emplace(now() - seconds(600));
  view.observed.live_for = seconds(14);
  EXPECT_EQ(after(view).attempt, 2);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(1));
  view.observed.live_for = seconds(15);
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kStartTimeout);
}

TEST(Heartbeat, APodThatIsNeverGrantedItEndsADurationLater) {
  JobView view = lease_of_the_first();
  view.job.spec.start_deadline = seconds(60);
  view.pods[0].created = now() - seconds(89);
  EXPECT_EQ(after(view).attempt, 2);
  view.pods[0].created = now() - seconds(90);
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kStartTimeout);
}

TEST(Heartbeat, AnAttemptsDeadlineCountsFromTheGrant) {
  JobView view = held_job();
  view.job.spec.attempt_deadline = seconds(20);  // the pod has run for 90 s
  view.begun().lease->acquired = now() - seconds(19);
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  view.begun().lease->acquired = now() - seconds(20);
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kDeadlineExceeded);
  view.begun().lease->acquired = now() - seconds(1);
  view.begun().lease->holder.clear();
  view.begun().lease->granted = pod_of(1) + "/uid-of-1";
  EXPECT_EQ(after(view).phase, Phase::kRunning) << "it waits for the Lease";
}

TEST(Heartbeat, AnAttemptWhoseWorkerEndedWithoutTheLeaseHasItsDeadlineFromItsStart) {
  JobView view = lease_of_the_first();
  view.job.spec.attempt_deadline = seconds(20);
  view.pods[0].containers[0].worker = true;
  view.pods[0].containers[0].terminated = Terminated{};
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kDeadlineExceeded);
}

// The init container that brings the agent has run, and the worker's image cannot be pulled.
JobView unpulled_job() {
  JobView view = held_job();
  view.begun().lease->renewed = false;
  ContainerView worker;
  worker.name = "worker";
  worker.worker = true;
  worker.waiting_reason = "ImagePullBackOff";
  worker.waiting_message = "no such image";
  view.pods[0].containers[0].init = true;
  view.pods[0].containers.push_back(worker);
  return view;
}

TEST(Heartbeat, AWorkerThatHasNotStartedIsReportedAsThatOfAPlainPod) {
  JobView view = unpulled_job();
  EXPECT_EQ(after(view).waiting->reason, "ImagePullBackOff");
  EXPECT_EQ(after(view).waiting->message, "container worker: no such image");
  view.begun().lease->acquired = now() - seconds(600);
  view.pods[0].created = now() - seconds(600);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.history.back().outcome, Outcome::kStartTimeout);
  ASSERT_FALSE(write.events.empty());
  EXPECT_THAT(write.events[0].note, HasSubstr("container worker: ImagePullBackOff"));

  JobView starting = unpulled_job();
  starting.pods[0].containers[1].waiting_reason = "PodInitializing";
  starting.pods[0].containers[1].being_created = true;
  EXPECT_EQ(after(starting).waiting->reason, "PodStarting");
  starting.begun().lease->renewed = true;
  EXPECT_EQ(after(starting).waiting->reason, "PodRunning") << "whoever renewed it";
}

JobView watched_job() {
  JobView view = held_job();
  view.job.spec.heartbeat->progress_deadline = seconds(60);
  view.begun().observed.lease.stalled_for = seconds(60);
  view.begun().lease->progress_age = seconds(60);
  return view;
}

TEST(Heartbeat, AHolderThatMakesNoProgressHasHungWhichIsAFailure) {
  const JobView view = watched_job();
  EXPECT_TRUE(decide(view, now()).confirm);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.history.back().outcome, Outcome::kHung);
  EXPECT_EQ(write.ended.at(0).orphan_class, "holder_hung");
  EXPECT_EQ(write.status.failures, 1);
  EXPECT_EQ(write.status.disruptions, 0);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u) << "the child is stopped";
}

TEST(Heartbeat, ProgressThatMayBeOnItsWayIsWaitedForADurationAtMost) {
  JobView view = watched_job();
  view.begun().lease->progress_age = seconds(59);  // the last renewal is older than the deadline
  EXPECT_EQ(after(view).attempt, 2);
  view.begun().observed.lease.stalled_for = seconds(60) + kDuration;
  EXPECT_EQ(written(view).status.history.back().outcome, Outcome::kHung);
}

TEST(Heartbeat, WithoutAProgressDeadlineNobodyHangs) {
  JobView view = watched_job();
  view.job.spec.heartbeat->progress_deadline.reset();
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(Heartbeat, RenewalsAndProgressThatComeInTimeWriteNothing) {
  JobView view = watched_job();
  view.begun().lease->progress_age = seconds(20);
  view.begun().observed.lease.stalled_for = seconds(20);
  view.begun().observed.lease.silent_for = seconds(10);
  view.job.status = after(view);
  view.begun().observed.lease.stalled_for = seconds(25);
  view.begun().observed.lease.silent_for = seconds(3);
  EXPECT_TRUE(settle(view, now() + seconds(5)).writes.empty());
}

TEST(Heartbeat, WhatIsHalfwayToAVerdictIsReported) {
  JobView view = watched_job();
  view.begun().observed.lease.stalled_for = seconds(31);
  view.begun().lease->progress_age = seconds(31);
  EXPECT_EQ(after(view).waiting->reason, "NoProgress");
  view.begun().observed.lease.silent_for = seconds(23);
  EXPECT_EQ(after(view).waiting->reason, "HolderSilent");
}

TEST(Heartbeat, AMessageOfProgressIsWrittenEveryHalfMinuteAtMost) {
  JobView view = held_job();
  view.job.status = after(view);
  view.begun().lease->progress_message = "10 %";
  view.observed.since_write = seconds(2);
  EXPECT_EQ(after(view).run().progress, "10 %") << "the first at once";
  view.job.status = after(view);
  view.begun().lease->progress_message = "11 %";
  const Decision decision = settle(view);
  EXPECT_TRUE(decision.writes.empty());
  EXPECT_LE(*decision.wake_after, seconds(28));
  view.observed.since_write = seconds(30);
  EXPECT_EQ(after(view).run().progress, "11 %");
  view.begun().observed.lease.silent_for = kDuration;
  EXPECT_EQ(after(view).run().progress, "") << "the next attempt has made none";
}

TEST(Heartbeat, TheLastMessageOfProgressIsWrittenWithTheEnd) {
  JobView view = held_job();
  view.job.status.begun().progress = "10 %";
  view.begun().lease->progress_message = "100 %";
  view.begun().lease->ended = true;
  view.pods[0].phase = PodPhase::kSucceeded;
  Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_EQ(status.history.back().progress, "100 %");
  view.begun().lease->holder = "another/pod";
  EXPECT_EQ(after(view).history.back().progress, "10 %") << "of the pod that ended, not of another";
}

TEST(Heartbeat, ALeaseCountsWhileItsJobRunsTheAttemptAndItsWorkerWasNotSeenToEnd) {
  JobView view = held_job();
  view.pods[0].containers[0].worker = true;
  const auto counts = [&] {
    return is_worked_on(*view.begun().lease, view.job.status,
                        view.pods.empty() ? nullptr : &view.pods[0]);
  };
  EXPECT_TRUE(counts());
  const auto run = view.job.status.run();
  view.job.status.begun().next_attempt_time = now();
  EXPECT_FALSE(counts()) << "its attempt has ended";
  view.job.status.runs.clear();
  EXPECT_FALSE(counts()) << "the job has";
  view.job.status.begun() = run;
  view.job.status.begun().attempt = 3;
  EXPECT_FALSE(counts());
  view.job.status.begun() = run;
  view.pods[0].containers[0].terminated = Terminated{};
  EXPECT_FALSE(counts());
  view.pods[0].uid = "of-another";
  EXPECT_TRUE(counts());
  view.pods.clear();
  EXPECT_TRUE(counts());
}

// A kubelet that died right after the start, or that pulls a second container's image, reports
// late.
TEST(Heartbeat, AWorkerThatRenewsHasStartedWhateverItsKubeletReports) {
  JobView view = held_job();
  PodView& pod = view.pods[0];
  pod.containers.clear();
  add_container(pod, "holdfast-agent", Progress::kEnded).init = true;
  add_container(pod, "main", Progress::kWaits).worker = true;
  view.begun().observed.still_for = seconds(5000);
  view.begun().lease->renewed = true;
  EXPECT_TRUE(after(view).history.empty());
  EXPECT_EQ(after(view).waiting->reason, "PodRunning");
  view.begun().lease->ended = true;
  EXPECT_TRUE(after(view).history.empty());
  view.begun().lease->renewed = view.begun().lease->ended = false;
  EXPECT_EQ(after(view).history.at(0).outcome, Outcome::kStartTimeout);
}

// Its worker has ended with the code of one that fenced itself; another container runs.
JobView ended_beside_another(const std::string& message) {
  JobView view = held_job();
  PodView& pod = view.pods[0];
  pod.containers.clear();
  add_container(pod, "shipper", Progress::kRuns);
  ContainerView& worker = add_container(pod, "main", Progress::kEnded);
  worker.worker = true;
  worker.terminated->exit_code = 85;
  worker.terminated->message = message;
  return view;
}

// With restartPolicy Never the pod can only fail, and its other containers need not end.
TEST(Heartbeat, AWorkerThatFencedItselfIsLostThoughAnotherContainerRuns) {
  EXPECT_TRUE(after(ended_beside_another("something else")).history.empty());
  const JobView view = ended_beside_another("holdfast: fenced: cut off\n");
  EXPECT_TRUE(decide(view, now()).confirm);
  const Status status = after(view);
  EXPECT_EQ(status.history.back().outcome, Outcome::kLost);
  EXPECT_EQ(status.history.back().reason, "Fenced");
  EXPECT_EQ(status.disruptions, 1);
  EXPECT_EQ(all<DeletePod>(settle(view)).at(0).name, view.pods[0].name);
}

TEST(Heartbeat, AFencedWorkerOfAPodThatIsDeletedEndsByThat) {
  JobView view = ended_beside_another("holdfast: fenced: told to end\n");
  delete_pod(view.pods[0], seconds(1));
  EXPECT_TRUE(after(view).history.empty());
}

TEST(Heartbeat, AnAgentThatFencedItselfIsADisruption) {
  JobView view = held_job();
  PodView& pod = view.pods[0];
  pod.phase = PodPhase::kFailed;
  ContainerView worker;
  worker.name = "main";
  worker.worker = worker.started = true;
  worker.terminated = Terminated{};
  worker.terminated->exit_code = 85;
  worker.terminated->message = "holdfast: fenced: cut off\n";
  pod.containers = {worker};
  EXPECT_EQ(written(view).status.history.back().reason, "Fenced");
  EXPECT_EQ(written(view).status.disruptions, 1);
  pod.containers[0].terminated->message = "something else";
  EXPECT_EQ(written(view).status.failures, 1) << "85 may be the worker's own";
}

TEST(LeaseHandOver, TheCheckpointGoesThroughTakeAndGrant) {
  JobView view = lease_of_the_first();
  view.begun().lease->checkpoint = "page 7";
  ASSERT_EQ(lease_writes(view).size(), 1u);
  EXPECT_EQ(lease_writes(view)[0].checkpoint, "page 7");
  EXPECT_TRUE(lease_writes(view)[0].holder.empty()) << "a take";
  view.begun().observed.lease.granted_stopped = true;
  ASSERT_EQ(lease_writes(view).size(), 1u);
  EXPECT_EQ(lease_writes(view)[0].checkpoint, "page 7");
  EXPECT_FALSE(lease_writes(view)[0].holder.empty()) << "a grant";
}

// Of its two runs the first is open. The run 2 was forgotten when `completions` fell.
JobView job_that_forgot_a_run() {
  JobView view = job_of_runs(2, 2, 2);
  view.job.spec.heartbeat = Heartbeat{kDuration, std::nullopt};
  view.job.status.attempt = 9;
  LeaseView lease;
  lease.uid = "lease-of-2";
  lease.version = 70;
  lease.attempt = 7;
  lease.holder = lease.granted = pod_of(7) + "/uid-of-7";
  lease.renewed = true;
  lease.checkpoint = "page 7";
  view.leases_over.push_back({2, lease, {}});
  return view;
}

std::optional<WriteLease> take_of_the_over(const JobView& view) {
  for (const WriteLease& write : lease_writes(view)) {
    if (write.over) return write;
  }
  return std::nullopt;
}

TEST(LeaseOver, AForgottenRunsLeaseIsTakenAndStaysForOneDuration) {
  JobView view = job_that_forgot_a_run();
  const auto take = take_of_the_over(view);
  ASSERT_TRUE(take);
  EXPECT_EQ(take->run, 2);
  EXPECT_EQ(take->uid, "lease-of-2");
  EXPECT_EQ(take->attempt, 7);
  EXPECT_EQ(take->holder, "");
  EXPECT_EQ(take->granted, pod_of(7) + "/uid-of-7");
  EXPECT_EQ(take->checkpoint, "page 7");
  EXPECT_TRUE(all<DeleteLease>(settle(view)).empty());
  LeaseOver& over = view.leases_over[0];
  over.lease.holder.clear();
  over.observed.taken_for = kDuration - seconds(1);
  EXPECT_FALSE(take_of_the_over(view));
  EXPECT_TRUE(all<DeleteLease>(settle(view)).empty());
  EXPECT_LE(*settle(view).wake_after, seconds(1));
  over.observed.taken_for = kDuration;
  EXPECT_EQ(all<DeleteLease>(settle(view)).size(), 1u);
}

TEST(LeaseOver, ALeaseOfNobodyThatWorksOrOfARunThatHasEndedGoesAtOnce) {
  JobView view = job_that_forgot_a_run();
  JobView stopped = view;
  stopped.leases_over[0].observed.granted_stopped = true;
  JobView never_ran = view;
  never_ran.leases_over[0].lease.renewed = false;
  JobView ended = view;
  ended.job.status.failed.add(2);
  for (const JobView& one : {stopped, never_ran, ended}) {
    EXPECT_FALSE(take_of_the_over(one));
    EXPECT_EQ(all<DeleteLease>(settle(one)).size(), 1u);
  }
}

// From many runs to one and back the Lease of run 0 has another name.
TEST(LeaseOver, AgentsOfTheOtherNameAreCutOffBeforeTheLeaseIsGranted) {
  for (const std::int64_t completions : {1, 2}) {
    JobView view = held_job();
    view.job.spec.completions = completions;
    view.job.status.runs[0].attempts = 2;
    LeaseView former = *view.begun().lease;
    former.attempt = 1;
    former.holder = former.granted = pod_of(1) + "/uid-of-1";
    former.checkpoint = "page 7";
    view.leases_over.push_back({completions == 1 ? 0 : kSingleLease, former, {}});
    view.begun().lease.reset();
    auto writes = lease_writes(view);
    ASSERT_EQ(writes.size(), 2u) << completions;
    EXPECT_EQ(writes[0].holder, "");
    EXPECT_FALSE(writes[0].over);
    EXPECT_EQ(writes[0].checkpoint, "page 7") << "it goes on with the run";
    EXPECT_TRUE(writes[1].over) << "and the other one is taken";
    LeaseView own;
    own.uid = "own";
    own.version = 90;
    own.attempt = 2;
    own.granted = "unknown";
    view.begun().lease = own;
    view.begun().observed.lease.taken_for = kDuration;
    LeaseOver& over = view.leases_over[0];
    EXPECT_EQ(lease_writes(view).size(), 1u) << "no grant";
    EXPECT_TRUE(take_of_the_over(view));
    over.lease.holder.clear();
    over.observed.taken_for = kDuration - seconds(1);
    EXPECT_TRUE(lease_writes(view).empty());
    over.observed.taken_for = kDuration;
    writes = lease_writes(view);
    ASSERT_EQ(writes.size(), 1u) << completions;
    EXPECT_EQ(writes[0].holder, holder_identity(view.pods[0]));
    EXPECT_EQ(all<DeleteLease>(settle(view)).size(), 1u);
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
