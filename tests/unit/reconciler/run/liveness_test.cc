// What time alone does: start and attempt deadlines, silent nodes, pods that do not go.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView pod_running() {
  JobView view = job_with_pod();
  view.job.status = after(view);
  return view;
}
JobView pod_pending() {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kPending);
  view.job.status = after(view);
  return view;
}

// The verdict comes exactly at `due`, after one live look.
void expect_end_at(const JobView& view, Time due, Outcome outcome, const std::string& reason) {
  const Status before = after(view, due - std::chrono::milliseconds(1));
  EXPECT_EQ(before.attempt, 1);
  EXPECT_TRUE(before.history.empty());
  const Decision last = decide(view, due - std::chrono::milliseconds(1));
  ASSERT_TRUE(last.wake_after);
  EXPECT_LE(*last.wake_after, std::chrono::milliseconds(1));
  EXPECT_TRUE(decide(view, due).confirm);
  const Status status = after(view, due);
  EXPECT_EQ(only(status.history).outcome, outcome);
  EXPECT_EQ(status.history[0].reason, reason);
}

TEST(Deadlines, APodThatHasNotStartedByTheStartDeadlineIsAStartTimeout) {
  const JobView view = pod_pending();
  expect_end_at(view, now() + seconds(500), Outcome::kStartTimeout, "StartTimeout");
  const Status status = after(view, now() + seconds(500));
  EXPECT_EQ(status.disruptions, 1);
  EXPECT_EQ(all<DeletePod>(settle(view, now() + seconds(500))).at(0).name, pod_of(1));
  JobView slow = view;
  slow.observed.asked = now() + seconds(499);
  EXPECT_TRUE(after(slow, now() + seconds(500)).history.empty())
      << "it may have started since the live read";
}

// Its pod runs since 90 s, and the job since 100 s.
TEST(Deadlines, NoTimeThatPassedWhileThePodWasReadEndsAnything) {
  JobView deadline = job_with_pod();
  deadline.job.spec.active_deadline = seconds(100);
  JobView attempt = job_with_pod();
  attempt.job.spec.attempt_deadline = seconds(90);
  JobView stuck = job_with_pod();
  stuck.job.spec.lost_after = seconds(40);
  delete_pod(stuck.pods[0], seconds(70));
  stuck.pods[0].going_for = seconds(70);
  for (JobView view : {deadline, attempt, stuck}) {
    view.observed.asked = now() - seconds(1);
    EXPECT_TRUE(after(view).history.empty()) << "the pod may have succeeded since the live read";
    const Decision decision = settle(view);
    ASSERT_TRUE(decision.wake_after);
    EXPECT_LE(*decision.wake_after, seconds(1)) << "it is looked at again at once";
    view.observed.asked.reset();
    EXPECT_EQ(after(view).history.size(), 1U);
  }
}

TEST(Deadlines, AnInitContainerThatRunsIsAStart) {
  JobView view = pod_pending();
  add_container(view.pods[0], "fetch", Progress::kRuns).init = true;
  EXPECT_TRUE(after(view, now() + seconds(5000)).history.empty());
}

// An image may be missing behind an init container, too.
TEST(Deadlines, EachNextContainerHasTheStartDeadlineOnceNothingElseRuns) {
  JobView view = pod_pending();
  add_container(view.pods[0], "fetch", Progress::kEnded).init = true;
  view.pods[0].containers[0].waiting_reason = "ImagePullBackOff";
  view.begun().observed.still_for = seconds(599);
  EXPECT_FALSE(decide(view, now() + seconds(5000)).confirm);
  EXPECT_EQ(decide(view, now() + seconds(5000)).wake_after, seconds(1));
  view.begun().observed.still_for = seconds(600);
  EXPECT_TRUE(decide(view, now() + seconds(5000)).confirm);
  const Status status = after(view, now() + seconds(5000));
  EXPECT_EQ(only(status.history).outcome, Outcome::kStartTimeout);
  EXPECT_EQ(status.disruptions, 1);
  const auto events = written(view, now() + seconds(5000)).events;
  EXPECT_THAT(events.at(0).note, HasSubstr("main: ImagePullBackOff"));
}

TEST(Deadlines, ASidecarThatRunsIsNoSignThatTheNextContainerStarts) {
  JobView view = pod_pending();
  ContainerView& mesh = add_container(view.pods[0], "mesh", Progress::kRuns);
  mesh.init = mesh.sidecar = true;
  view.begun().observed.still_for = seconds(599);
  EXPECT_TRUE(after(view, now() + seconds(5000)).history.empty());
  view.begun().observed.still_for = seconds(600);
  EXPECT_EQ(after(view, now() + seconds(5000)).history.size(), 1u);
}

TEST(Deadlines, ASidecarThatCrashesAgainAndAgainIsNoStep) {
  JobView view = pod_pending();
  PodView& pod = view.pods[0];
  ContainerView& mesh = add_container(pod, "mesh", Progress::kRuns);
  mesh.init = mesh.sidecar = true;
  const int steps = pod.steps();
  pod.containers[1].terminated = Terminated{};
  EXPECT_EQ(pod.steps(), steps);
  EXPECT_TRUE(pod.stands_still());
}

TEST(Deadlines, WhileAContainerRunsTheOthersMayWait) {
  JobView view = pod_running();
  add_container(view.pods[0], "later", Progress::kWaits);
  view.begun().observed.still_for = seconds(5000);
  EXPECT_TRUE(after(view, now() + seconds(5000)).history.empty());
}

TEST(Deadlines, ANextContainerThatMayHaveStartedInAnOutageWaitsForReports) {
  JobView view = pod_pending();
  add_container(view.pods[0], "fetch", Progress::kEnded).init = true;
  view.begun().observed.still_for = seconds(900);
  view.observed.live_for = seconds(4);
  const Decision decision = decide(view, now() + seconds(900));
  EXPECT_FALSE(decision.confirm);
  EXPECT_EQ(decision.wake_after, seconds(11));
}

TEST(Deadlines, AStartTimeoutWaitsForReportsAfterAnOutage) {
  JobView view = pod_pending();
  view.observed.live_for = seconds(4);
  const Decision decision = decide(view, now() + seconds(900));
  EXPECT_FALSE(decision.confirm);
  EXPECT_EQ(decision.wake_after, seconds(11));
}

TEST(Deadlines, AnAttemptMayRunForItsDeadlineFromItsStart) {
  JobView view = pod_running();
  view.job.spec.attempt_deadline = seconds(100);
  expect_end_at(view, now() + seconds(10), Outcome::kDeadlineExceeded, "AttemptDeadlineExceeded");
  EXPECT_EQ(after(view, now() + seconds(10)).failures, 1);
  EXPECT_EQ(after(view, now() + seconds(10)).phase, Phase::kBackoff);
}

TEST(Deadlines, AKubeletWhoseClockIsSlowCostsNoAttemptItsTime) {
  JobView view = pod_running();
  view.job.spec.attempt_deadline = seconds(150);
  view.pods[0].containers[0].started_at = now() - seconds(7200);
  EXPECT_FALSE(decide(view, now()).confirm);
  EXPECT_TRUE(decide(view, now() + seconds(50)).confirm);
}

TEST(Deadlines, ASilentNodeLosesItsAttemptAfterTheWindow) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.silent_for = seconds(40) - std::chrono::milliseconds(1);
  EXPECT_TRUE(after(view).history.empty());
  EXPECT_EQ(decide(view, now()).wake_after, std::chrono::milliseconds(1));
  node.silent_for = seconds(40);
  EXPECT_TRUE(decide(view, now()).confirm);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.ended.at(0).orphan_class, "node_silent");
  EXPECT_EQ(write.status.attempt, 2);
  EXPECT_EQ(write.status.history[0].reason, "NodeSilent");
}

// The node monitor tells when it is not heard any more.
TEST(Deadlines, ForANodeThatIsHeardOnlyTheVerdictHasATimer) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.silent_for = seconds(5);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(15)) << "it would be reported then";
  node.is_heard = true;
  EXPECT_EQ(decide(view, now()).wake_after, seconds(35));
  view.job.spec.active_deadline = seconds(86400);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(35)) << "even if nobody tells";
}

TEST(Deadlines, ANodeThatRenewsBeforeTheLiveLookLosesNothing) {
  JobView view = pod_running();
  view.observed.nodes[kNode].silent_for = seconds(0);
  view.begun().observed.confirmed = true;
  EXPECT_TRUE(after(view).history.empty());
}

TEST(Deadlines, TheBreakerGivesASilentNodeOneWindowMoreOnce) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.breaker = true;
  node.silent_for = seconds(79);
  EXPECT_TRUE(after(view).history.empty());
  node.silent_for = seconds(80);
  EXPECT_EQ(written(view).ended.at(0).orphan_class, "node_silent");
}

TEST(Deadlines, WhileTheBreakerHoldsItIsAskedAgainSoThatItsEndIsSeen) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.breaker = true;
  node.silent_for = seconds(30);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(10));
  node.silent_for = seconds(50);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(1));
}

TEST(Deadlines, ANodeThatWasSilentBeforeAnOutageIsSaidToBeOnceOthersHaveRenewed) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.unheard_for = seconds(60);
  node.silent_for = seconds(5);
  EXPECT_EQ(after(view).waiting->reason, "PodRunning");
  EXPECT_EQ(decide(view, now()).wake_after, seconds(10)) << "a node that lives renews by then";
  node.silent_for = seconds(15);
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, "NodeSilent");
  EXPECT_EQ(status.waiting->deadline, now() + seconds(25)) << "no verdict comes sooner for it";
  node.unheard_for = seconds(15);
  EXPECT_EQ(after(view).waiting->reason, "PodRunning");
}

TEST(Deadlines, AMissingNodeLosesItsAttemptAfterTheWindow) {
  JobView view = pod_running();
  view.observed.nodes[kNode].missing_for = seconds(39);
  EXPECT_TRUE(after(view).history.empty());
  EXPECT_EQ(decide(view, now()).wake_after, seconds(1));
  view.observed.nodes[kNode].missing_for = seconds(40);
  EXPECT_EQ(written(view).ended.at(0).orphan_class, "node_gone");
}

TEST(Deadlines, APodOnANodeWithoutALeaseIsJudgedByThePodAlone) {
  JobView view = pod_running();
  view.observed.nodes[kNode] = NodeObservation{};
  EXPECT_TRUE(after(view, now() + std::chrono::hours(100)).history.empty());
}

// A virtual kubelet, say: the node controller's word is all there is.
TEST(Deadlines, ANodeWithoutALeaseIsSilentWhileItsReadyConditionIsUnknown) {
  JobView view = pod_running();
  NodeObservation& node = view.observed.nodes[kNode];
  node.has_lease = false;
  node.silent_for = seconds(30);
  ASSERT_TRUE(after(view).waiting);
  EXPECT_EQ(after(view).waiting->message, "node node-a's Ready condition is Unknown");
  node.silent_for = seconds(40);
  EXPECT_EQ(written(view).ended.at(0).orphan_class, "node_silent");
  EXPECT_EQ(
      written(view).events[0].note,
      "attempt 1 ended (NodeSilent): node node-a's Ready condition has been Unknown for 40 s");
}

TEST(Deadlines, ADeletedPodMayTakeItsGraceAndTheWindow) {
  JobView view = pod_running();
  delete_pod(view.pods[0], seconds(10));  // grace ends in 20 s
  expect_end_at(view, now() + seconds(60), Outcome::kLost, "PodStuckTerminating");
  EXPECT_EQ(written(view, now() + seconds(60)).ended.at(0).orphan_class, "pod_stuck_terminating");
}

TEST(Deadlines, AnOverstayIsWatchedForItsWholeWindowAfterAnOutage) {
  JobView view = pod_running();
  delete_pod(view.pods[0], seconds(3000));
  view.pods[0].going_for = seconds(15);
  const Decision decision = decide(view, now());
  EXPECT_FALSE(decision.confirm);
  EXPECT_EQ(decision.wake_after, seconds(25));
}

TEST(Deadlines, ADeletedPodThatWasNeverBoundIsLostAtOnce) {
  JobView view = pod_pending();
  view.pods[0].node_name.clear();
  delete_pod(view.pods[0], seconds(0));
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.history[0].reason, "PodDeleted");
  EXPECT_EQ(write.status.attempt, 2);
}

// What keeps a pod from starting is the first question of whoever reads that time ended it.
const char* const kMissing = "configmap \"settings\" not found";

JobView kept_from_starting() {
  JobView view = pod_pending();
  ContainerView& main = view.pods[0].containers[0];
  main.waiting_reason = "CreateContainerConfigError";
  main.waiting_message = kMissing;
  return view;
}

bool names_the_cause(const std::string& text) {
  return text.find(std::string("container main: CreateContainerConfigError: ") + kMissing) !=
         std::string::npos;
}

TEST(KeptFromStarting, IsInHistoryAndInTheConditionThatTimeMakes) {
  JobView view = kept_from_starting();
  view.job.spec.active_deadline = seconds(100);
  Status status = after(view);
  EXPECT_TRUE(names_the_cause(status.history.at(0).message)) << status.history[0].message;
  EXPECT_TRUE(names_the_cause(status.condition("FailureTarget")->message));

  view = kept_from_starting();
  view.job.spec.disruption_limit = 0;
  status = after(view, now() + seconds(500));
  EXPECT_TRUE(names_the_cause(status.history.at(0).message)) << status.history[0].message;
  ASSERT_TRUE(has_condition(status, "FailureTarget", "DisruptionLimitExceeded"));
  EXPECT_TRUE(names_the_cause(status.condition("FailureTarget")->message));
}

TEST(KeptFromStarting, AContainerInTroubleIsNamedBeforeOneThatOnlyWaits) {
  JobView view = kept_from_starting();
  ContainerView other;
  other.name = "first";
  other.waiting_reason = "PodInitializing";
  other.being_created = true;
  view.pods[0].containers.insert(view.pods[0].containers.begin(), other);
  EXPECT_TRUE(names_the_cause(after(view, now() + seconds(500)).history.at(0).message));
}

TEST(KeptFromStarting, APodWithoutANodeOrWithoutAnAnswerSaysSo) {
  JobView view = pod_pending();
  view.job.spec.active_deadline = seconds(100);
  view.pods[0].node_name.clear();
  view.pods[0].unschedulable = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
  EXPECT_THAT(after(view).condition("FailureTarget")->message,
              HasSubstr("Insufficient nvidia.com/gpu"));
  view.pods.clear();
  view.begun().observed.own_intent = true;
  view.begun().observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kRefused, "exceeded quota: gpus", seconds(5)};
  EXPECT_THAT(after(view).condition("FailureTarget")->message, HasSubstr("exceeded quota: gpus"));
}

TEST(KeptFromStarting, OfManyRunsOneIsNamed) {
  JobView view = job_of_runs(3, 3, 3);
  view.job.spec.active_deadline = seconds(60);
  PodView& pod = view.pods[2];
  pod.phase = PodPhase::kPending;
  pod.containers[0].started = false;
  pod.containers[0].started_at.reset();
  pod.containers[0].waiting_reason = "ImagePullBackOff";
  pod.containers[0].waiting_message = "Back-off pulling image";
  EXPECT_NE(after(view)
                .condition("FailureTarget")
                ->message.find("; run 2; container main: ImagePullBackOff: Back-off pulling image"),
            std::string::npos)
      << after(view).condition("FailureTarget")->message;
}

}  // namespace
}  // namespace holdfast::reconciler::testing
