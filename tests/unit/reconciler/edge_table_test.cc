// Every edge of the transition table is taken where the design says, and no other is ever taken.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

using enum Phase;

JobView suspended(JobView view) {
  view.job.spec.suspend = true;
  return view;
}
JobView cancelled(JobView view) {
  view.job.spec.cancel = true;
  return view;
}
Phase next_phase(const JobView& view) { return after(view).phase; }

TEST(Edges, ANewJobStartsItsFirstAttemptInOneWriteFollowedByItsPod) {
  const Decision decision = settle(new_job());
  ASSERT_EQ(decision.writes.size(), 2u);
  const Status status = after(new_job());
  EXPECT_EQ(status.phase, kRunning);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.run().pod_name, pod_of(1));
  EXPECT_EQ(status.start_time, now());
  EXPECT_EQ(std::get<CreatePod>(decision.writes[1]).name, pod_of(1));
  EXPECT_EQ(std::get<CreatePod>(decision.writes[1]).attempt, 1);
}

TEST(Edges, ANewJobThatIsSuspendedGoesToSuspended) {
  JobView view = suspended(new_job());
  EXPECT_EQ(next_phase(view), kSuspended);
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(Edges, ANewJobThatIsCancelledGoesToCancelled) {
  EXPECT_EQ(next_phase(cancelled(new_job())), kCancelled);
}

TEST(Edges, ANewJobWithAPodOfItsOwnWaitsInPendingForItWhenThePolicySaysSo) {
  JobView view = new_job();
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(next_phase(view), kPending);
}

TEST(Edges, PendingStartsTheNextAttempt) {
  const Status status = after(job_in(kPending));
  EXPECT_EQ(status.phase, kRunning);
  EXPECT_EQ(status.attempt, 2);
}

TEST(Edges, PendingSuspendedAgainGoesToSuspended) {
  EXPECT_EQ(next_phase(suspended(job_in(kPending))), kSuspended);
}

TEST(Edges, PendingCancelledGoesToCancelledOrWhileAPodLivesToCancelling) {
  JobView view = cancelled(job_in(kPending));
  EXPECT_EQ(next_phase(view), kCancelled);
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(next_phase(view), kCancelling);
}

TEST(Edges, PendingOverItsTimeOrBudgetGoesToFailed) {
  JobView late = job_in(kPending);
  late.job.spec.active_deadline = seconds(100);
  EXPECT_EQ(next_phase(late), kFailed);
  JobView spent = job_in(kPending);
  spent.job.status.failures = 7;
  EXPECT_EQ(next_phase(spent), kFailed);
}

TEST(Edges, RunningSucceedsWithItsPod) {
  JobView view = job_with_ended_pod(0);
  const Status status = after(view);
  EXPECT_EQ(status.phase, kSucceeded);
  EXPECT_TRUE(has_condition(status, "Complete", "CompletionsReached"));
  EXPECT_EQ(status.completion_time, now());
  EXPECT_FALSE(status.waiting);
}

TEST(Edges, RunningFailsIntoBackoffAndAtTheEndOfTheBudgetIntoFailed) {
  JobView view = job_with_ended_pod(1);
  EXPECT_EQ(next_phase(view), kBackoff);
  view.job.spec.backoff_limit = 0;
  EXPECT_EQ(next_phase(view), kFailed);
}

TEST(Edges, RunningLostGoesOnRunningWithTheNextAttemptInOneWrite) {
  JobView view = running_job();
  view.begun().observed.pod_existed = true;
  const Status status = after(view);
  EXPECT_EQ(status.phase, kRunning);
  EXPECT_EQ(status.attempt, 2);
  EXPECT_EQ(status.disruptions, 1);
  EXPECT_EQ(only(status.history).attempt, 1);
  EXPECT_EQ(status.history[0].outcome, Outcome::kLost);
}

TEST(Edges, RunningSuspendedOrCancelledStopsItsPod) {
  JobView view = job_with_pod();
  view.job.spec.suspend = true;
  EXPECT_EQ(next_phase(view), kSuspended);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u);
  view.job.spec.cancel = true;
  EXPECT_EQ(next_phase(view), kCancelling);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1u);
}

TEST(Edges, BackoffStartsTheNextAttemptWhenItsTimeHasCome) {
  const JobView view = job_in(kBackoff);
  EXPECT_EQ(next_phase(view), kBackoff);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(10));
  EXPECT_EQ(after(view, now() + seconds(10)).phase, kRunning);
  EXPECT_EQ(after(view, now() + seconds(10)).attempt, 2);
  EXPECT_FALSE(after(view, now() + seconds(10)).run().next_attempt_time);
}

// Somebody edited the status, or lowered retryBackoff.maxSeconds.
TEST(Edges, BackoffIsNeverLongerThanTheLongestFromNow) {
  JobView view = job_in(kBackoff);
  const seconds longest = view.job.spec.retry_backoff.max;
  view.job.status.begun().next_attempt_time = now() + std::chrono::years(200);
  const Status shortened = after(view);
  EXPECT_EQ(shortened.run().next_attempt_time, now() + longest);
  EXPECT_EQ(shortened.waiting->deadline, now() + longest);
  EXPECT_EQ(decide(view, now()).wake_after, longest);
  view.job.status = shortened;
  EXPECT_TRUE(all<WriteStatus>(settle(view, now() + seconds(60))).empty());
  EXPECT_EQ(after(view, now() + longest).attempt, 2);
}

// The clock follows the API server's, and may go back by a moment.
TEST(Edges, ABackoffOfTheLongestIsNotWrittenAgain) {
  JobView view = job_in(kBackoff);
  const Time due = now() + view.job.spec.retry_backoff.max;
  view.job.status.begun().next_attempt_time = view.job.status.waiting->deadline = due;
  EXPECT_TRUE(all<WriteStatus>(settle(view, now() - seconds(1))).empty());
}

TEST(Edges, TheNextAttemptComesAfterLaterPodsButNeverJumps) {
  JobView view = job_in(kBackoff);
  add_ended_pod(view, 1001, 0);
  EXPECT_EQ(after(view, now() + seconds(10)).attempt, 1002);
  add_ended_pod(view, 1002, 0);
  EXPECT_EQ(after(view, now() + seconds(10)).attempt, 1002);
}

TEST(Edges, BackoffObeysSuspendAndCancelAtOnce) {
  JobView view = suspended(job_in(kBackoff));
  EXPECT_EQ(next_phase(view), kSuspended);
  view.job.spec.cancel = true;
  EXPECT_EQ(next_phase(view), kCancelled);
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(next_phase(view), kCancelling);
}

TEST(Edges, SuspendedGoesToPendingWhenResumed) {
  EXPECT_EQ(next_phase(job_in(kSuspended)), kPending);
}

TEST(Edges, SuspendedCancelledGoesToCancelledOrWhileAPodLivesToCancelling) {
  JobView view = cancelled(suspended(job_in(kSuspended)));
  EXPECT_EQ(next_phase(view), kCancelled);
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(next_phase(view), kCancelling);
}

TEST(Edges, SuspendedWithALoweredBudgetGoesToFailed) {
  JobView view = suspended(job_in(kSuspended));
  view.job.status.failures = 2;
  view.job.spec.backoff_limit = 1;
  EXPECT_EQ(next_phase(view), kFailed);
}

TEST(Edges, CancellingGoesToCancelledWhenNoPodLives) {
  JobView view = cancelled(job_in(kCancelling));
  EXPECT_EQ(next_phase(view), kCancelled);
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(next_phase(view), kCancelling);
}

TEST(Edges, NothingLeavesATerminalPhase) {
  for (const Phase phase : {kSucceeded, kFailed, kCancelled}) {
    JobView view = job_in(phase);
    view.job.spec.suspend = true;
    view.job.spec.cancel = true;
    view.job.spec.backoff_limit = 0;
    view.job.status.failures = 3;
    view.job.spec.active_deadline = seconds(1);
    add_ended_pod(view, 1, 0);
    add_pod(view, 2, PodPhase::kRunning);
    EXPECT_EQ(next_phase(view), phase);
  }
}

// Some thousand views: every phase with every request, limit, pod and observation beside it.
class EveryView {
 public:
  template <class Visit>
  void visit(Visit visit_view) {
    for (const Phase phase : {kNone, kPending, kRunning, kBackoff, kSuspended, kCancelling,
                              kSucceeded, kFailed, kCancelled}) {
      for (int bits = 0; bits < 1 << 11; ++bits) {
        for (int pod = 0; pod < 8; ++pod) visit_view(view_of(phase, bits, pod));
      }
    }
  }

 private:
  static JobView view_of(Phase phase, int bits, int pod) {
    const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
    JobView view = job_in(phase);
    Spec& spec = view.job.spec;
    spec.suspend = bit(0);
    spec.cancel = bit(1);
    if (bit(2)) spec.active_deadline = seconds(50);
    if (bit(3)) spec.pod_replacement = PodReplacementPolicy::kFailed;
    if (bit(4)) {
      spec.backoff_limit = 0;
      view.job.status.failures = phase == kNone || phase == kRunning ? 0 : 1;
    }
    view.job.deleting = bit(5);
    view.begun().observed.own_intent = bit(6);
    view.begun().observed.pod_existed = bit(7);
    if (bit(8)) view.begun().observed.refusal = refusal_of(pod);
    if (bit(9)) view.observed.nodes[kNode].silent_for = seconds(45);
    if (bit(10)) view.begun().observed.no_pod_for = seconds(20);
    add_pods(view, pod);
    return view;
  }

  static CreationRefusal refusal_of(int kind) {
    return CreationRefusal{static_cast<CreationRefusal::Kind>(kind % 3), "no", seconds(5)};
  }

  static void add_pods(JobView& view, int kind) {
    switch (kind) {
      case 1:
        add_pod(view, 1, PodPhase::kRunning);
        break;
      case 2:
        add_pod(view, 1, PodPhase::kPending).node_name.clear();
        break;
      case 3:
        add_ended_pod(view, 1, 0);
        break;
      case 4:
        add_ended_pod(view, 1, 1);
        break;
      case 5:
        delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(300));
        break;
      case 6:
        add_pod(view, 2, PodPhase::kRunning).job_uid_label.clear();
        break;
      case 7:
        add_pod(view, 1, PodPhase::kRunning).owner_uid = "another";
        break;
      default:
        break;
    }
  }
};

TEST(Edges, NoDecisionEverTakesAnotherEdgeOrBreaksTheShapeOfADecision) {
  int decisions = 0;
  int problems = 0;
  EveryView().visit([&](JobView view) {
    for (const bool confirmed : {false, true}) {
      view.begun().observed.confirmed = confirmed;
      const std::string why = broken_by(view, decide(view, now()), now());
      ++decisions;
      if (why.empty() || ++problems > 5) continue;
      ADD_FAILURE() << why << " from " << to_string(view.job.status.phase) << " suspend "
                    << view.job.spec.suspend << " cancel " << view.job.spec.cancel << " pods "
                    << view.pods.size();
    }
  });
  EXPECT_EQ(problems, 0);
  EXPECT_EQ(decisions, 9 * (1 << 11) * 8 * 2);
}

TEST(Edges, ADecisionOnWhatItHasJustWrittenWritesNoStatusTwice) {
  int problems = 0;
  EveryView().visit([&](JobView view) {
    // A status that follows from a view needs at most four more to come to rest, time standing.
    int writes = 0;
    for (int i = 0; i < 6; ++i) {
      const auto statuses = all<WriteStatus>(settle(view));
      if (statuses.empty()) return;
      ++writes;
      view.job.status = statuses.front().status;
    }
    if (++problems <= 5) ADD_FAILURE() << "still writes after " << writes << " decisions";
  });
  EXPECT_EQ(problems, 0);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
