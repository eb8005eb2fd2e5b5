// A pod that is being created belongs to the job: the job does not end before it, and no other
// stage begins.
#include "reconciler/run/creations.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// Its attempt has just ended; nobody has seen its pod.
JobView ended_without_pod(Phase phase) {
  JobView view = running_job();
  auto& run = view.job.status.runs.at(0);
  run.pod_uid.clear();
  run.node_name.clear();
  run.next_attempt_time = now();
  view.job.status.phase = phase;
  view.job.status.waiting =
      Waiting{Reason::kPodTerminating, "stops", "ends", std::nullopt, now() - seconds(1)};
  create_pod_slowly(view, 1);
  return view;
}

void expect_waits(const JobView& view) {
  const Status next = after(view);
  EXPECT_FALSE(is_terminal(next.phase));
  ASSERT_TRUE(next.waiting);
  EXPECT_EQ(next.waiting->reason, Reason::kPodCreationUnanswered);
  EXPECT_EQ(next.waiting->deadline, now() + seconds(60));
  EXPECT_LE(decide(view, now()).wake_after, seconds(60));
}

// What every kind of end does once no request can succeed any more.
void expect_ends_after_a_look(JobView view, Phase phase) {
  view.observed.creations[0].left = Duration::zero();
  const Decision look = decide(view, now());
  EXPECT_TRUE(look.confirm);
  EXPECT_EQ(look.confirm_creations, std::vector<std::int64_t>{1});
  EXPECT_EQ(after(view).phase, phase);
}

TEST(OpenCreations, ACancelledJobIsNotOverBeforeThem) {
  JobView view = ended_without_pod(Phase::kCancelling);
  view.job.cancel = view.job.spec.cancel = true;
  expect_waits(view);
  expect_ends_after_a_look(view, Phase::kCancelled);
}

TEST(OpenCreations, NorIsOneThatWasCancelledBetweenTwoAttempts) {
  JobView view = ended_without_pod(Phase::kBackoff);
  view.job.cancel = view.job.spec.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  view.job.status.phase = Phase::kSuspended;
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  view.observed.creations.clear();
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(OpenCreations, AJobOfOneRunThatFailsIsNotOverBeforeThem) {
  JobView view = running_job();
  view.job.spec.active_deadline = seconds(50);
  create_pod_slowly(view, 1);
  view.job.status = after(view);
  EXPECT_FALSE(is_terminal(view.job.status.phase));
  EXPECT_TRUE(has_condition(view.job.status, "FailureTarget", "DeadlineExceeded"));
  expect_waits(view);
  expect_ends_after_a_look(view, Phase::kFailed);
}

TEST(OpenCreations, NorIsOneWhoseLimitWasLoweredBetweenTwoAttempts) {
  JobView view = ended_without_pod(Phase::kBackoff);
  view.job.status.failures = view.job.status.runs[0].failures = 3;
  view.job.spec.backoff_limit = 2;
  view.job.status = after(view);
  EXPECT_FALSE(is_terminal(view.job.status.phase));
  expect_waits(view);
}

// It is looked at again without any event.
TEST(OpenCreations, ASuspendedJobWhoseLimitWasLoweredEndsAfterThem) {
  JobView view = ended_without_pod(Phase::kSuspended);
  view.job.spec.suspend = true;
  view.job.status.failures = view.job.status.runs[0].failures = 3;
  view.job.spec.backoff_limit = 2;
  EXPECT_FALSE(is_terminal(after(view).phase));
  EXPECT_EQ(settle(view).wake_after, seconds(60));
  expect_ends_after_a_look(view, Phase::kFailed);
}

TEST(OpenCreations, ARequestThatIsStillInLineHoldsNothingUp) {
  JobView view = ended_without_pod(Phase::kCancelling);
  view.job.cancel = view.job.spec.cancel = true;
  view.observed.creations[0].asked = false;
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(OpenCreations, ThePodThatComesIsStoppedFirst) {
  JobView view = ended_without_pod(Phase::kCancelling);
  view.job.cancel = view.job.spec.cancel = true;
  view.observed.creations.clear();
  view.observed.cancelling_for = seconds(100);
  add_pod(view, 1, PodPhase::kRunning);
  const Decision decision = decide(view, now());
  EXPECT_EQ(all<DeletePod>(decision).size(), 1u);
  EXPECT_FALSE(is_terminal(after(view).phase)) << "nobody has asked it to stop yet";
}

// With podReplacementPolicy Failed two pods never overlap. So a pod that may still come counts as
// an old one, whoever asked for it.
TEST(OpenCreations, WithThePolicyFailedTheNextAttemptWaitsForThem) {
  JobView view = ended_without_pod(Phase::kBackoff);
  view.observed.creations[0].expected = false;
  EXPECT_EQ(after(view).attempt, 2) << "with the other policy it does not wait";
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  expect_waits(view);
  EXPECT_EQ(after(view).attempt, 1);
  view.observed.creations[0].left = Duration::zero();
  EXPECT_TRUE(decide(view, now()).confirm);
  EXPECT_EQ(after(view).attempt, 2);
}

TEST(OpenCreations, TheRecordNamesEachAttemptWhosePodNobodyKnows) {
  Status status = running_job(3).job.status;
  auto& run = status.runs.at(0);
  run.node_name.clear();
  run.pod_uid.clear();
  HistoryEntry entry;
  entry.attempt = 2;
  entry.pod_name = pod_of(2);
  entry.end_time = now() - seconds(30);
  status.history = {entry};
  auto found = podless_attempts(status, now());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].attempt, 2);
  EXPECT_EQ(found[0].closed, now() - seconds(30));
  EXPECT_EQ(found[1].attempt, 3);
  EXPECT_FALSE(found[1].closed) << "its attempt is open";
  run.next_attempt_time = now() + seconds(5);
  EXPECT_EQ(podless_attempts(status, now())[1].closed, now() + seconds(5));
  EXPECT_EQ(podless_attempts(status, now() + seconds(60)).size(), 1u)
      << "no request of attempt 2 is left";
  run.pod_uid = "known";
  status.history[0].pod_uid = "known";
  EXPECT_TRUE(podless_attempts(status, now()).empty());
  run.pod_uid.clear();
  run.worker_uid = "worker";
  EXPECT_TRUE(podless_attempts(status, now()).empty()) << "it has no pod";
}

// ---- Deletions that are refused, and those that fail.

JobView stopping(DeletionTrouble trouble, Duration cancelling_for) {
  JobView view = ended_without_pod(Phase::kCancelling);
  view.job.cancel = view.job.spec.cancel = true;
  view.job.spec.lost_after = seconds(15);
  view.observed.creations.clear();
  view.observed.cancelling_for = cancelling_for;
  view.job.status.waiting->since = now() - cancelling_for;
  add_pod(view, 1, PodPhase::kRunning);
  view.observed.deletions[pod_of(1)] = std::move(trouble);
  return view;
}

TEST(Deletions, APodWhoseDeletionIsRefusedIsGivenUpAfterTheWindow) {
  EXPECT_EQ(after(stopping({true, "denied"}, seconds(10))).waiting->deadline, now() + seconds(5));
  EXPECT_EQ(after(stopping({true, "denied"}, seconds(15))).phase, Phase::kCancelled);
}

TEST(Deletions, OneWhoseDeletionFailsIsNotAndTheJobIsStalledOnceItShouldHaveEnded) {
  const auto fails = [](seconds since) { return stopping({false, "no endpoints"}, since); };
  EXPECT_EQ(after(fails(seconds(30))).phase, Phase::kCancelling);
  EXPECT_FALSE(after(fails(seconds(44))).holds("Stalled"));
  EXPECT_EQ(decide(fails(seconds(44)), now()).wake_after, seconds(1));
  JobView view = fails(seconds(45));
  view.job.status = after(view);
  EXPECT_TRUE(has_condition(view.job.status, "Stalled", "PodDeletionFails"));
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPodDeletionFails);
  // A person's own request to delete the pod would meet the same webhook.
  EXPECT_THAT(view.job.status.waiting->next_action, HasSubstr("repair or remove the webhook"));
  EXPECT_THAT(view.job.status.waiting->message, HasSubstr("no endpoints"));
  view.observed.deletions.clear();
  EXPECT_TRUE(after(view).holds("Stalled")) << "a new process has not asked yet";
  EXPECT_EQ(all<DeletePod>(decide(view, now())).size(), 1u);
  delete_pod(view.pods[0], seconds(1));
  EXPECT_FALSE(after(view).holds("Stalled"));
  EXPECT_EQ(after(view).waiting->reason, Reason::kPodTerminating);
}

TEST(Deletions, OneThatFailsIsReportedOnceHoweverOftenItIsTried) {
  JobView view = stopping({false, "no endpoints"}, seconds(45));
  view.job.status = after(view);
  const Time reported = view.job.status.condition("Stalled")->last_transition_time;
  view.observed.since_write = seconds(20);
  EXPECT_TRUE(all<WriteStatus>(decide(view, now() + seconds(20))).empty());
  view.observed.deletions[pod_of(1)].message = "other words";
  const Status later = after(view, now() + seconds(20));
  EXPECT_EQ(later.condition("Stalled")->last_transition_time, reported);
}

// Nobody asks it to stop while this view of the job may be older than the pod. The write of the end
// conflicts if it is.
TEST(Deletions, APodOfALaterNumberHoldsUpNoEnd) {
  JobView view = ended_without_pod(Phase::kCancelling);
  view.job.cancel = view.job.spec.cancel = true;
  view.observed.creations.clear();
  add_pod(view, 2, PodPhase::kRunning);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kCancelled);
  EXPECT_EQ(all<DeletePod>(decide(view, now())).size(), 1u);
}

TEST(Deletions, ThePodsGraceComesFirst) {
  JobView view = stopping({false, "no endpoints"}, seconds(45));
  view.pods[0].grace = seconds(60);
  EXPECT_FALSE(after(view).holds("Stalled"));
  EXPECT_TRUE(after(view, now() + seconds(30)).holds("Stalled"));
}

TEST(Deletions, AnEndThatIsOnRecordWaitsForItToo) {
  JobView view = stopping({false, "no endpoints"}, seconds(100));
  view.job.cancel = view.job.spec.cancel = false;
  view.job.status.phase = Phase::kPending;
  view.job.status.conditions = {
      Condition{"FailureTarget", true, "BackoffLimitExceeded", "m", now()}};
  EXPECT_FALSE(is_terminal(after(view).phase));
  EXPECT_TRUE(after(view).holds("Stalled"));
  view.observed.deletions[pod_of(1)].refused = true;
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
