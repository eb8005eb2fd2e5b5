// What the end of a job, or of a stage, does to its open runs: which successes still count, what a
// stopped run costs, and what is read live before it is stopped.
#include <gtest/gtest.h>

#include <algorithm>

#include "reconciler/job/edges.h"
#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// The job's time was over 40 s ago.
JobView overdue(JobView view) {
  view.job.spec.active_deadline = seconds(60);
  return view;
}

PolicyRule fail_job_on(int code) { return on_exit_code(PolicyAction::kFailJob, {code}); }

SuccessRule first_index_is_enough() {
  SuccessRule rule;
  rule.indexes = IndexSet::parse("0", 4);
  return rule;
}

// The label is gone, so the watch does not show the pod. It runs.
void hide_pod(JobView& view, std::int64_t index) {
  const Run& run = view.job.status.runs.at(static_cast<std::size_t>(index));
  std::erase_if(view.pods, [&](const PodView& pod) { return pod.uid == run.pod_uid; });
}

// A live look at these runs finds their pods.
void look_at(JobView& view, const std::vector<std::int64_t>& runs) {
  view.runs.resize(view.job.status.runs.size());
  view.observed.asked = now();
  for (const std::int64_t index : runs) {
    const auto& begun = view.job.status.runs;
    const auto found = std::find_if(begun.begin(), begun.end(),
                                    [&](const Run& run) { return run.index == index; });
    if (found == begun.end()) continue;
    const Run& run = *found;
    view.runs[static_cast<std::size_t>(found - begun.begin())].observed.confirmed = true;
    const bool shown = std::any_of(view.pods.begin(), view.pods.end(),
                                   [&](const PodView& pod) { return pod.uid == run.pod_uid; });
    if (!shown) add_pod(view, run.attempt, PodPhase::kRunning).job_uid_label.clear();
  }
}

bool any_is_open(const Status& status) {
  return std::any_of(status.runs.begin(), status.runs.end(),
                     [](const auto& run) { return run.open(); });
}

// What the operator writes until it needs no more look or write, with all pods as they are.
Status settled(JobView view, Time at) {
  for (int round = 0; round < 9; ++round) {
    const Status next = after(view, at);
    if (next == view.job.status) return next;
    view.job.status = next;
    view.runs.clear();
  }
  ADD_FAILURE() << "it never comes to rest";
  return view.job.status;
}

// ---- A success counts, however late it is read.

TEST(LateSuccess, CountsForOneRunAndForMany) {
  JobView one = overdue(running_job());
  add_ended_pod(one, 1, 0);
  EXPECT_TRUE(has_condition(after(one), "Complete", "CompletionsReached"));
  JobView many = overdue(job_of_runs(3, 3, 3));
  for (std::int64_t index = 0; index < 3; ++index) end_pod(many, index, 0);
  const Status status = after(many);
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_TRUE(has_condition(status, "Complete", "CompletionsReached"));
  EXPECT_FALSE(status.condition("FailureTarget"));
}

TEST(LateSuccess, CountsWhereTheSuccessPolicyIsMet) {
  JobView view = overdue(job_of_runs(5, 3, 3));
  view.job.spec.success_policy = {first_index_is_enough()};
  end_pod(view, 0, 0);
  EXPECT_TRUE(has_condition(after(view), "SuccessCriteriaMet", "SuccessPolicy"));
}

TEST(LateSuccess, CountsInAnyLookUntilTheLastOpenRunIsRead) {
  JobView view = overdue(job_of_runs(3, 3, 3));
  view.job.spec.success_policy = {first_index_is_enough()};
  end_pod(view, 2, 0);
  look_at(view, {1, 2});  // the read of run 0 failed
  const auto writes = all<WriteStatus>(decide(view, now()));
  EXPECT_FALSE(only(writes).status.condition("FailureTarget"));
  view.job.status = writes[0].status;
  end_pod(view, 0, 0);
  view.runs.clear();
  view.observed.asked.reset();
  EXPECT_TRUE(has_condition(after(view), "SuccessCriteriaMet", "SuccessPolicy"));
}

TEST(LateSuccess, DoesNotCountWithoutTheOthersThatTheJobNeeds) {
  JobView view = overdue(job_of_runs(3, 3, 3));
  end_pod(view, 0, 0);
  end_pod(view, 1, 0);
  const Status status = after(view);
  EXPECT_TRUE(has_condition(status, "FailureTarget", "DeadlineExceeded"));
  EXPECT_EQ(status.completed.text(), "0,1");
}

TEST(LateSuccess, ComesAfterAFailureOfTheJob) {
  JobView by_policy = overdue(job_of_runs(3, 3, 3));
  by_policy.job.spec.pod_failure_policy = {fail_job_on(42)};
  by_policy.job.spec.success_policy = {first_index_is_enough()};
  JobView by_budget = by_policy;
  by_budget.job.spec.backoff_limit = 0;
  JobView by_index = by_policy;
  by_index.job.spec.backoff_limit_per_index = 0;
  by_index.job.spec.backoff_limit = kCountLimit;
  by_index.job.spec.success_policy.clear();
  for (JobView* const view : {&by_policy, &by_budget, &by_index}) {
    end_pod(*view, 0, 0);
    end_pod(*view, 2, 0);
  }
  end_pod(by_policy, 1, 42);
  end_pod(by_budget, 1, 1);
  end_pod(by_index, 1, 1);
  EXPECT_TRUE(has_condition(after(by_policy), "Failed", "PodFailurePolicy"));
  EXPECT_TRUE(has_condition(after(by_budget), "Failed", "BackoffLimitExceeded"));
  EXPECT_TRUE(has_condition(after(by_index), "Failed", "FailedIndexes"));
}

// ---- A deadline is no failure of the runs that it stops.

TEST(Stopped, RunsOfADeadlineCostNothingHoweverMany) {
  JobView view = overdue(job_of_runs(510, 510, 510));
  view.job.spec.backoff_limit_per_index = 0;
  view.job.spec.backoff_limit = kCountLimit;
  const Status first = after(view);
  EXPECT_FALSE(first.condition("FailureTarget")) << "ten runs may still succeed";
  const Status status = settled(view, now());
  EXPECT_TRUE(has_condition(status, "FailureTarget", "DeadlineExceeded"));
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(status.disruptions, 0);
  EXPECT_EQ(status.failed.text(), "");
  EXPECT_FALSE(any_is_open(status));
  EXPECT_EQ(status.history.back().outcome, Outcome::kCancelled);
  EXPECT_EQ(status.history.back().reason, Reason::kRunsStopped);
}

TEST(Stopped, TheOneRunOfAJobAsManyDo) {
  JobView view = overdue(running_job());
  view.job.spec.backoff_limit = 0;
  view.job.status.begun().pod_uid = add_pod(view, 1, PodPhase::kRunning).uid;
  const Status status = after(view);
  EXPECT_TRUE(has_condition(status, "FailureTarget", "DeadlineExceeded"));
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(only(status.history).outcome, Outcome::kCancelled);
  EXPECT_EQ(status.history[0].reason, Reason::kRunsStopped);
}

// ---- Each end looks live at the runs that it stops.

struct End {
  const char* name;
  JobView view;  // of four open runs; an end of run 0 or the time ends the job
};

std::vector<End> ends_of_four_runs() {
  std::vector<End> ends;
  JobView view = job_of_runs(9, 4, 4);
  ends.push_back({"deadline", overdue(view)});
  view.job.spec.pod_failure_policy = {fail_job_on(42)};
  end_pod(view, 0, 42);
  ends.push_back({"FailJob", view});
  view.job.spec.backoff_limit = 0;
  end_pod(view, 0, 1);
  ends.push_back({"budget", view});
  view.job.spec.success_policy = {first_index_is_enough()};
  end_pod(view, 0, 0);
  ends.push_back({"success policy", view});
  JobView template_ = job_of_runs(9, 4, 4);
  template_.job.status.runs[0].pod_uid.clear();
  template_.job.status.runs[0].node_name.clear();
  std::erase_if(template_.pods, [](const PodView& pod) { return pod.attempt == 1; });
  template_.begun().observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kTemplateInvalid, "no such field", seconds(5)};
  ends.push_back({"template", template_});
  return ends;
}

TEST(EachEnd, LooksLiveAtTheRunsThatItStops) {
  for (const End& end : ends_of_four_runs()) {
    const Decision decision = decide(end.view, now());
    EXPECT_TRUE(decision.confirm) << end.name;
    for (const std::int64_t index : {1, 2, 3}) {
      EXPECT_EQ(std::count(decision.confirm_runs.begin(), decision.confirm_runs.end(), index), 1)
          << end.name;
    }
  }
}

TEST(EachEnd, AsksAPodThatNoWatchShowsToGoAndWaitsForIt) {
  for (End& end : ends_of_four_runs()) {
    JobView& view = end.view;
    hide_pod(view, 3);
    look_at(view, decide(view, now()).confirm_runs);
    const Decision decision = decide(view, now());
    const auto reported = all<DeletePod>(decision);
    EXPECT_TRUE(std::any_of(reported.begin(), reported.end(), [](const DeletePod& write) {
      return write.name == pod_of(4);
    })) << end.name;
    ASSERT_EQ(all<WriteStatus>(decision).size(), 1u) << end.name;
    EXPECT_FALSE(is_terminal(all<WriteStatus>(decision)[0].status.phase)) << end.name;
  }
}

TEST(EachEnd, CountsTheSuccessThatTheLookFinds) {
  for (End& end : ends_of_four_runs()) {
    JobView& view = end.view;
    const auto asked = decide(view, now()).confirm_runs;
    end_pod(view, 3, 0);
    look_at(view, asked);
    const auto writes = all<WriteStatus>(decide(view, now()));
    ASSERT_EQ(writes.size(), 1u) << end.name;
    EXPECT_TRUE(writes[0].status.completed.contains(3)) << end.name;
  }
}

// The look that a verdict needed has been, and the verdict ends the job.
TEST(EachEnd, StopsTheRunsThatItHasNotReadAfterTheNextLook) {
  JobView view = job_of_runs(9, 4, 4);
  view.job.spec.disruption_limit = 0;
  hide_pod(view, 3);
  const Decision lost = [&] {
    JobView one = view;
    std::erase_if(one.pods, [](const PodView& pod) { return pod.attempt == 1; });
    one.runs.resize(4);
    one.runs[0].observed.pod_existed = one.runs[0].observed.confirmed = true;
    create_pod_slowly(one,
                      one.job.status.runs[3].attempt);  // its pod is on its way, as far as it knows
    one.observed.asked = now();
    return decide(one, now());
  }();
  ASSERT_EQ(all<WriteStatus>(lost).size(), 1u);
  const Status recorded = all<WriteStatus>(lost)[0].status;
  EXPECT_TRUE(has_condition(recorded, "FailureTarget", "DisruptionLimitExceeded"));
  EXPECT_EQ(recorded.phase, Phase::kRunning) << "the others are read first";
  EXPECT_EQ(recorded.runs.size(), 4u);
  view.job.status = recorded;
  std::erase_if(view.pods, [](const PodView& pod) { return pod.attempt == 1; });
  const Decision next = decide(view, now());
  EXPECT_TRUE(next.confirm);
  look_at(view, {1, 2, 3});
  EXPECT_EQ(all<DeletePod>(decide(view, now())).size(), 3u);
}

// A read may fail for as long as it likes: nothing is written twice meanwhile.
TEST(EachEnd, WritesNothingWhileAReadFails) {
  JobView view = job_of_runs(9, 4, 4);
  view.job.spec.pod_failure_policy = {fail_job_on(42)};
  end_pod(view, 0, 42);
  look_at(view, {1, 2});
  view.job.status = all<WriteStatus>(decide(view, now())).at(0).status;
  EXPECT_TRUE(has_condition(view.job.status, "FailureTarget", "PodFailurePolicy"));
  ASSERT_TRUE(view.job.status.runs.at(3).open());
  view.runs.clear();
  look_at(view, {});
  EXPECT_TRUE(all<WriteStatus>(decide(view, now())).empty());
}

TEST(EachEnd, ReadsAStoppedRunThatNoWatchShowsBeforeTheJobIsOver) {
  for (End& end : ends_of_four_runs()) {
    JobView& view = end.view;
    view.job.status = after(view);
    ASSERT_FALSE(is_terminal(view.job.status.phase)) << end.name;
    view.runs.clear();
    view.pods.clear();
    const Decision decision = decide(view, now());
    EXPECT_TRUE(decision.confirm) << end.name;
    look_at(view, {3});
    const Decision found = decide(view, now());
    EXPECT_EQ(all<DeletePod>(found).size(), 1u) << end.name;
    for (const WriteStatus& write : all<WriteStatus>(found)) {
      EXPECT_FALSE(is_terminal(write.status.phase)) << end.name;
    }
  }
}

// In Backoff the last attempt's pod may have lost its label while it was being stopped.
TEST(EachEnd, OfAJobThatRestsLooksForItsLastPod) {
  for (const bool cancel : {false, true}) {
    JobView view = job_in(Phase::kBackoff);
    view.job.spec.cancel = cancel;
    if (!cancel) view = overdue(view);
    EXPECT_TRUE(decide(view, now()).confirm) << cancel;
    view.begun().observed.confirmed = true;
    view.observed.asked = now();
    add_pod(view, 1, PodPhase::kRunning).job_uid_label.clear();
    const Decision found = decide(view, now());
    EXPECT_EQ(all<DeletePod>(found).size(), 1u) << cancel;
    for (const WriteStatus& write : all<WriteStatus>(found)) {
      EXPECT_FALSE(is_terminal(write.status.phase)) << cancel;
    }
    view.pods.clear();
    EXPECT_EQ(after(view).phase, cancel ? Phase::kCancelled : Phase::kFailed);
  }
}

// ---- An attempt may have ended long before its pod has. The end waits for that pod.

// Each of these jobs is to end, and the pod of attempt 1, which has ended, still runs.
std::vector<End> ends_beside_an_old_pod() {
  std::vector<End> ends;
  JobView rests = overdue(job_in(Phase::kBackoff));
  add_history(rests, Outcome::kHung, 1);
  add_pod(rests, 1, PodPhase::kRunning);
  ends.push_back({"time in back-off", rests});

  JobView limit = job_of_runs(2, 2, 2);
  limit.job.spec.backoff_limit = 0;
  limit.job.status.runs[0].next_attempt_time = now() + seconds(9);
  end_pod(limit, 1, 1);
  ends.push_back({"limit of another run", limit});

  JobView replaced = running_job(2);
  add_history(replaced, Outcome::kHung, 1);
  add_pod(replaced, 1, PodPhase::kRunning);
  add_ended_pod(replaced, 2, 0);
  ends.push_back({"success of the next attempt", replaced});
  return ends;
}

bool is_over(const Status& status) { return is_terminal(status.phase); }

TEST(AnOldPod, HoldsUpTheEndWhileItRuns) {
  for (End& end : ends_beside_an_old_pod()) {
    const Status asked = after(end.view);
    EXPECT_FALSE(is_over(asked)) << end.name << ": nobody has asked it to stop";
    EXPECT_TRUE(recorded_end(asked)) << end.name;
    EXPECT_EQ(asked.waiting->reason, Reason::kRunsStopped) << end.name;
    delete_pod(end.view.pods.at(0), seconds(5));
    EXPECT_FALSE(is_over(settled(end.view, now()))) << end.name << ": it has its grace";
  }
}

TEST(AnOldPod, ThatHasEndedOrWasGivenUpHoldsNothingUp) {
  for (End& end : ends_beside_an_old_pod()) {
    JobView ended = end.view;
    ended.pods.at(0).phase = PodPhase::kFailed;
    EXPECT_TRUE(is_over(after(ended))) << end.name;
    JobView stuck = end.view;
    delete_pod(stuck.pods.at(0), seconds(31) + stuck.job.spec.lost_after);
    EXPECT_TRUE(is_over(after(stuck))) << end.name;
  }
}

TEST(AnOldPod, OfALostAttemptHoldsNothingUp) {
  for (End& end : ends_beside_an_old_pod()) {
    end.view.job.status.history.clear();
    add_history(end.view, Outcome::kLost, 1);
    EXPECT_TRUE(is_over(after(end.view))) << end.name;
  }
}

// History has the last ten attempts only.
TEST(AnOldPod, OnASilentNodeHoldsNothingUp) {
  for (End& end : ends_beside_an_old_pod()) {
    const auto window = end.view.job.spec.lost_after;
    delete_pod(end.view.pods.at(0), seconds(5));
    end.view.observed.nodes[kNode].silent_for = window - seconds(1);
    EXPECT_FALSE(is_over(settled(end.view, now()))) << end.name;
    end.view.observed.nodes[kNode].silent_for = window;
    EXPECT_TRUE(is_over(after(end.view))) << end.name;
    end.view.observed.nodes[kNode].breaker = true;
    EXPECT_FALSE(is_over(settled(end.view, now()))) << end.name << ": so are the others";
  }
}

TEST(AnOldPod, OfASuspendedJobOverALoweredLimitLeavesItSuspendedUntilItHasEnded) {
  JobView view = job_in(Phase::kSuspended);
  view.job.spec.suspend = true;
  view.job.spec.backoff_limit = 0;
  view.job.status.failures = 1;
  add_pod(view, 1, PodPhase::kRunning);
  const Decision decision = decide(view, now());
  EXPECT_EQ(all<DeletePod>(decision).size(), 1u);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSuspended);
  EXPECT_FALSE(recorded_end(status)) << "it may be resumed under a higher limit";
  view.pods.clear();
  add_ended_pod(view, 1, 1);
  EXPECT_EQ(after(view).phase, Phase::kFailed);
  // Nobody can stop it, and no window runs while the end is not on record.
  view.pods.clear();
  add_pod(view, 1, PodPhase::kRunning);
  view.observed.deletions[pod_of(1)] = {.refused = true, .message = "no"};
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

TEST(FewerRuns, WithThePolicyFailedARunThatIsLeftOutIsForgottenOnceItsPodHasEnded) {
  JobView view = job_of_runs(4, 4, 4);
  for (auto& run : view.job.status.runs) run.next_attempt_time = now() - seconds(9);
  view.job.status.phase = Phase::kSuspended;
  view.job.status.waiting = Waiting{Reason::kSuspended, "m", "n", std::nullopt};
  view.job.spec.completions = 2;
  for (std::int64_t index : {0, 1, 2}) end_pod(view, index, 1);
  EXPECT_EQ(after(view).runs.size(), 2u) << "a successor may start beside a pod";
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kSuspended);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kOldPodNotEnded);
  EXPECT_EQ(view.job.status.runs.size(), 4u);
  hide_pod(view, 3);
  EXPECT_TRUE(decide(view, now()).confirm) << "the watch may not show it";
  end_pod(view, 3, 1);
  look_at(view, {2, 3});
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.runs.size(), 2u);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
