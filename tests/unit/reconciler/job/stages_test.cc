// Stages: what runs after what, what a stage's end means for the job, and what is kept of it.
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// As after the first write: main has begun.
void list_stages(JobView& view) {
  for (const Stage& stage : view.job.stages) {
    view.job.status.stages.emplace_back();
    view.job.status.stages.back().name = stage.name;
  }
  view.job.status.stages[0].phase = StagePhase::kRunning;
  view.job.status.stages[0].start_time = view.job.status.start_time;
}

// What all stages have, and the one that runs.
template <class T>
void set_in_all(JobView& view, T Spec::*field, std::type_identity_t<T> value) {
  for (Stage& stage : view.job.stages) stage.spec.*field = value;
  view.job.spec.*field = value;
}

// The first attempt's pod ends well.
PodView& end_first_pod(JobView& view) {
  PodView& pod = add_ended_pod(view, 1, 0);
  view.job.status.runs[0].pod_uid = pod.uid;
  return pod;
}

// A job with these stages after main. Its first attempt runs.
JobView staged_job(std::vector<Stage> later) {
  JobView view = running_job();
  view.job.spec.first_container = "main";
  view.job.stages = {{kFirstStage, false, false, view.job.spec}};
  for (Stage& stage : later) {
    stage.spec = view.job.spec;
    if (stage.always) stage.spec.stage_deadline = kAlwaysDeadline;
    view.job.stages.push_back(std::move(stage));
  }
  list_stages(view);
  return view;
}

const Stage kVerify{"verify", false, false, {}};
const Stage kRefine{"refine", true, false, {}};
const Stage kCleanup{"clean-up", false, true, {}};

// The job's request to cancel holds for all stages but the Always ones.
void cancel(JobView& view) {
  view.job.cancel = true;
  for (Stage& stage : view.job.stages) stage.spec.cancel = !stage.always;
  view.job.spec = view.job.stages[view.job.status.stage].spec;
}

void set_job_deadline(JobView& view, seconds limit) {
  for (Stage& stage : view.job.stages) {
    if (!stage.always) stage.spec.active_deadline = limit;
  }
  view.job.spec = view.job.stages[view.job.status.stage].spec;
}

// What decoding makes of the written status.
void go_on(JobView& view, Status next) {
  const bool moves = next.stage != view.job.status.stage;
  view.job.status = std::move(next);
  view.job.spec = view.job.stages[view.job.status.stage].spec;
  view.runs.clear();
  if (!moves) return;
  view.begun().observed.own_intent = true;
}

// The current attempt's pod ends with this code, and the job goes on. Returns what was written.
WriteStatus ends(JobView& view, int exit_code, Time at = now()) {
  PodView& pod = add_ended_pod(view, view.job.status.attempt, exit_code);
  view.job.status.runs[0].pod_uid = pod.uid;
  WriteStatus write = written(view, at);
  EXPECT_EQ(refused_by_api(view.job.status, write.status), "");
  go_on(view, write.status);
  return write;
}

void fails_for_good(JobView& view) {
  set_in_all(view, &Spec::backoff_limit, 0);
  ends(view, 1);
}

TEST(Stages, TheNextOneWaitsForThePodOfAnAttemptThatEndedBefore) {
  JobView view = staged_job({kCleanup});
  set_job_deadline(view, seconds(60));
  view.job.status.phase = Phase::kBackoff;
  view.job.status.begun().next_attempt_time = now() + seconds(60);
  add_history(view, Outcome::kHung, 1);
  delete_pod(add_pod(view, 1, PodPhase::kRunning), seconds(5));
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.stage, 0u);
  EXPECT_EQ(after(view).stage, 0u);
  view.pods[0].phase = PodPhase::kFailed;
  EXPECT_EQ(after(view).stage, 1u);
}

TEST(Stages, TheNextOneBeginsInTheWriteThatEndsTheLast) {
  JobView view = staged_job({kVerify});
  const Status status = ends(view, 0).status;
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.stage, 1u);
  EXPECT_EQ(status.stages[0].phase, StagePhase::kSucceeded);
  EXPECT_EQ(status.stages[0].completion_time, now());
  EXPECT_EQ(status.stages[1].phase, StagePhase::kRunning);
  EXPECT_EQ(status.stages[1].start_time, now());
  EXPECT_EQ(only(status.runs).attempt, 2) << "fencing goes on";
  EXPECT_TRUE(status.completed.empty());
  EXPECT_EQ(status.history.back().stage, "main");
  EXPECT_TRUE(status.waiting->message.starts_with("stage verify: ")) << status.waiting->message;
}

TEST(Stages, ThePodOfTheNextOneComesWithTheNextLook) {
  JobView view = staged_job({kVerify});
  end_first_pod(view);
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty()) << "this view has main's template";
  ends(view, 0);
  EXPECT_EQ(only(all<CreatePod>(settle(view))).attempt, 2);
}

TEST(Stages, TheJobHasSucceededWithItsLast) {
  JobView view = staged_job({kVerify});
  EXPECT_FALSE(ends(view, 0).status.holds("ResultReady"));
  const Status status = ends(view, 0).status;
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_TRUE(status.holds("ResultReady"));
  EXPECT_TRUE(has_condition(status, "Complete", "StagesSucceeded"));
  EXPECT_FALSE(status.holds("Partial"));
}

TEST(Stages, AResultIsReadyBeforeItIsRefined) {
  JobView view = staged_job({kRefine});
  const Status ready = ends(view, 0).status;
  EXPECT_EQ(ready.phase, Phase::kRunning);
  EXPECT_TRUE(has_condition(ready, "ResultReady", "StagesSucceeded"));
  fails_for_good(view);
  const Status& status = view.job.status;
  EXPECT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_TRUE(has_condition(status, "Partial", "StageFailed"));
  EXPECT_EQ(status.stages[1].phase, StagePhase::kFailed);
  EXPECT_THAT(status.stages[1].message, HasSubstr("BackoffLimitExceeded"));
}

TEST(Stages, AFailureThatIsToleratedIsNoneOfTheJobs) {
  JobView view = staged_job({kRefine, kVerify});
  ends(view, 0);
  fails_for_good(view);
  EXPECT_EQ(view.job.status.phase, Phase::kRunning);
  EXPECT_EQ(view.job.status.stage, 2u);
  EXPECT_TRUE(view.job.status.holds("Partial"));
  EXPECT_FALSE(view.job.status.holds("FailureTarget"));
  ends(view, 0);
  EXPECT_EQ(view.job.status.phase, Phase::kSucceeded);
}

TEST(Stages, AfterAFailureOnlyAlwaysStagesRun) {
  JobView view = staged_job({kVerify, kCleanup});
  fails_for_good(view);
  const Status& status = view.job.status;
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_TRUE(has_condition(status, "FailureTarget", "BackoffLimitExceeded"));
  EXPECT_FALSE(status.holds("Partial"));
  EXPECT_EQ(status.stages[1].phase, StagePhase::kSkipped);
  EXPECT_TRUE(
      status.stages[1].message.starts_with("the job has failed: stage main: 1 attempt failed"))
      << status.stages[1].message;
  EXPECT_TRUE(status.waiting->message.starts_with(
      "the job has failed (BackoffLimitExceeded); stage clean-up: "))
      << status.waiting->message;
  ASSERT_TRUE(status.condition("ResultReady"));
  EXPECT_EQ(status.condition("ResultReady")->reason, "BackoffLimitExceeded");
  EXPECT_FALSE(status.holds("ResultReady"));
  EXPECT_EQ(status.stage, 2u);
  ends(view, 0);
  EXPECT_EQ(view.job.status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(view.job.status, "Failed", "BackoffLimitExceeded"));
}

TEST(Stages, AnAlwaysStageThatFailsChangesNoOutcome) {
  for (const int main_ends : {0, 1}) {
    JobView view = staged_job({kCleanup});
    for (Stage& stage : view.job.stages) stage.spec.backoff_limit = 0;
    view.job.spec.backoff_limit = 0;
    ends(view, main_ends);
    ends(view, 1);
    EXPECT_EQ(view.job.status.phase, main_ends == 0 ? Phase::kSucceeded : Phase::kFailed);
    EXPECT_EQ(view.job.status.stages[1].phase, StagePhase::kFailed);
  }
}

TEST(Stages, EachHasItsOwnBudgetAndTheJobCountsAll) {
  JobView view = staged_job({kVerify});
  set_in_all(view, &Spec::backoff_limit, 1);
  ends(view, 1);
  const auto again = [&] {
    view.pods.clear();
    go_on(view, after(view, now() + std::chrono::hours(1)));
  };
  again();
  ends(view, 0);
  EXPECT_EQ(view.job.status.stage, 1u);
  ends(view, 1);
  EXPECT_EQ(view.job.status.phase, Phase::kBackoff)
      << "one failure of its own, of which one is forgiven";
  EXPECT_EQ(view.job.status.failures, 2);
  EXPECT_EQ(view.job.status.stages[0].failures, 1);
  EXPECT_EQ(view.job.status.stages[1].failures, 1);
  again();
  ends(view, 1);
  EXPECT_EQ(view.job.status.phase, Phase::kFailed);
}

TEST(Stages, ACancelStopsTheCurrentOneAndLetsAlwaysStagesRun) {
  JobView view = staged_job({kVerify, kCleanup});
  add_pod(view, 1, PodPhase::kRunning);
  cancel(view);
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.phase, Phase::kCancelling);
  view.pods.clear();
  go_on(view, after(view));
  const Status status = view.job.status;
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.stage, 2u);
  EXPECT_EQ(status.stages[0].phase, StagePhase::kFailed);
  EXPECT_EQ(status.stages[0].message, "Cancelled: spec.cancel is true");
  EXPECT_EQ(status.stages[1].phase, StagePhase::kSkipped);
  EXPECT_FALSE(status.holds("FailureTarget"));
  ends(view, 0);
  EXPECT_EQ(view.job.status.phase, Phase::kCancelled);
  EXPECT_FALSE(view.job.status.holds("Partial")) << "there is no result";
}

TEST(Stages, ACancelledSuspendedJobCleansUp) {
  JobView view = staged_job({kCleanup});
  view.job.status = job_in(Phase::kSuspended).job.status;
  list_stages(view);
  cancel(view);
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.phase, Phase::kCancelling);
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.phase, Phase::kRunning);
  EXPECT_EQ(view.job.status.stage, 1u);
}

TEST(Stages, ACancelAfterTheResultChangesNoOutcome) {
  JobView view = staged_job({kRefine, kCleanup});
  ends(view, 0);
  view.pods.clear();
  cancel(view);
  view.begun().observed.own_intent = false;
  go_on(view, after(view));
  ASSERT_EQ(view.job.status.phase, Phase::kCancelling);
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.stage, 2u);
  EXPECT_TRUE(view.job.status.holds("Partial"));
  ends(view, 0);
  EXPECT_EQ(view.job.status.phase, Phase::kSucceeded);
}

TEST(Stages, TheJobsDeadlineEndsAllButAlwaysStages) {
  JobView view = staged_job({kRefine, kCleanup});
  set_job_deadline(view, seconds(60));
  add_pod(view, 1, PodPhase::kRunning);
  go_on(view, after(view));
  if (view.job.status.stage == 0) {  // its pod is stopped first
    view.pods.clear();
    go_on(view, after(view));
  }
  const Status status = view.job.status;
  EXPECT_TRUE(has_condition(status, "FailureTarget", "DeadlineExceeded"));
  EXPECT_EQ(status.stages[1].phase, StagePhase::kSkipped);
  EXPECT_EQ(status.stage, 2u);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.waiting->deadline, now() + kAlwaysDeadline) << "it has time of its own";
}

TEST(Stages, AToleratedStageHasADeadlineOfItsOwn) {
  JobView view = staged_job({kRefine, kVerify});
  view.job.stages[1].spec.stage_deadline = seconds(50);
  ends(view, 0);
  EXPECT_EQ(view.job.status.waiting->deadline, now() + seconds(50));
  view.pods.clear();
  view.runs.clear();
  const Time late = now() + seconds(51);
  go_on(view, after(view, late));
  EXPECT_EQ(view.job.status.stages[1].phase, StagePhase::kFailed);
  EXPECT_THAT(view.job.status.stages[1].message, HasSubstr("stage was active longer"));
  EXPECT_EQ(view.job.status.stage, 2u);
  EXPECT_EQ(view.job.status.phase, Phase::kRunning);
}

TEST(Stages, TheJobsDeadlineIsNotTolerated) {
  JobView view = staged_job({kRefine, kVerify});
  ends(view, 0);
  set_job_deadline(view, seconds(110));  // it has run for 100
  view.pods.clear();
  go_on(view, after(view, now() + seconds(11)));
  EXPECT_EQ(view.job.status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(view.job.status, "Failed", "DeadlineExceeded"));
}

TEST(Stages, ADeadlineAfterTheResultEndsTheStageAndNotTheOutcome) {
  JobView view = staged_job({kRefine});
  ends(view, 0);
  set_job_deadline(view, seconds(110));
  view.pods.clear();
  go_on(view, after(view, now() + seconds(11)));
  EXPECT_EQ(view.job.status.phase, Phase::kSucceeded);
  EXPECT_TRUE(view.job.status.holds("Partial"));
}

TEST(Stages, ATemplateThatCanNeverWorkAfterTheResultChangesNoOutcome) {
  JobView view = staged_job({kRefine});
  ends(view, 0);
  view.pods.clear();
  view.begun().observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kTemplateInvalid, "no such field", seconds(5)};
  go_on(view, after(view));
  EXPECT_EQ(view.job.status.phase, Phase::kSucceeded);
  EXPECT_THAT(view.job.status.stages[1].message, HasSubstr("PodTemplateInvalid"));
}

TEST(Stages, TheResultIsWhatTheFirstContainerLeft) {
  JobView view = staged_job({kVerify});
  PodView& pod = end_first_pod(view);
  ContainerView& side = add_container(pod, "a-sidecar", Progress::kEnded);
  side.terminated->message = "not this";
  pod.containers[0].terminated->message = "proof-42";
  view.job.spec.first_container = pod.containers[0].name;
  EXPECT_EQ(after(view).stages[0].result, "proof-42");
  view.job.spec.first_container = "another";
  EXPECT_EQ(after(view).stages[0].result, "");
}

TEST(Stages, ASuspensionStopsTheStagesClock) {
  JobView view = staged_job({kVerify});
  ends(view, 0);
  view.pods.clear();
  view.job.spec.suspend = true;
  go_on(view, after(view));
  ASSERT_EQ(view.job.status.phase, Phase::kSuspended);
  set_in_all(view, &Spec::suspend, false);
  const Status resumed = after(view, now() + seconds(40));
  EXPECT_EQ(resumed.phase, Phase::kPending);
  EXPECT_EQ(resumed.stage, 1u);
  EXPECT_EQ(resumed.stages[1].suspended, seconds(40));
  EXPECT_EQ(resumed.stages[0].suspended, seconds(0));
}

TEST(Stages, ANewOneWaitsForItsTurn) {
  JobView view = staged_job({kVerify});
  view.observed.may_create = false;
  const Status status = ends(view, 0).status;
  EXPECT_EQ(status.phase, Phase::kPending);
  EXPECT_EQ(status.stage, 1u);
  EXPECT_EQ(status.stages[1].phase, StagePhase::kPending);
  EXPECT_EQ(status.waiting->reason, Reason::kPodCreationQueued);
}

TEST(Stages, ADeletedJobStartsNothing) {
  JobView view = staged_job({kVerify, kCleanup});
  end_first_pod(view);
  view.job.deleting = true;
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(Stages, AnEarlierStagesCheckpointIsNotTheNextOnes) {
  JobView view = staged_job({kVerify});
  set_in_all(view, &Spec::heartbeat, Heartbeat{});
  ends(view, 0);
  view.pods.clear();
  PodView& pod = add_pod(view, 2, PodPhase::kRunning);
  view.job.status.runs[0].pod_uid = pod.uid;
  LeaseView lease;
  lease.uid = "lease";
  lease.version = 7;
  lease.holder = "train-1/pod-uid-1";
  lease.granted = lease.holder;
  lease.attempt = 1;
  lease.renewed = true;
  lease.checkpoint = "page 7 of main";
  lease.stage = "main";
  view.begun().lease = lease;
  const auto taken = all<WriteLease>(settle(view));
  EXPECT_EQ(only(taken).checkpoint, "");
  EXPECT_EQ(taken[0].stage, "verify");
  view.job.status.runs[0].attempts = 2;
  EXPECT_EQ(all<WriteLease>(settle(view))[0].checkpoint, "") << "nor that of a later attempt";
  view.begun().lease->stage = "verify";
  EXPECT_EQ(all<WriteLease>(settle(view))[0].checkpoint, "page 7 of main");
}

TEST(Stages, TimeInWhichAPodWasGatedDoesNotEndTheJobAtAJoint) {
  JobView view = staged_job({kVerify});
  set_job_deadline(view, seconds(60));  // it has run for 100
  view.job.status.waiting->reason = Reason::kPodGated;
  view.job.status.waiting->since = now() - seconds(90);
  PodView& pod = add_ended_pod(view, 1, 0);
  pod.placed = now() - seconds(10);
  view.job.status.runs[0].pod_uid = pod.uid;
  const Status status = after(view);
  EXPECT_EQ(status.stage, 1u);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_FALSE(status.holds("FailureTarget"));
}

TEST(Stages, DeferralsOfManyStagesNeverTakeMoreThanHalfOfHistory) {
  JobView view = staged_job({kVerify});
  view.job.spec.pod_failure_policy = {on_exit_code(PolicyAction::kDefer, {75})};
  auto& history = view.job.status.history;
  for (int number = 1; number <= 5; ++number) {
    HistoryEntry entry;
    entry.stage = "earlier-" + std::to_string(number);
    entry.attempt = number;
    entry.outcome = Outcome::kDeferred;
    history.push_back(entry);
  }
  view.job.status.attempt = view.job.status.runs[0].attempt = 6;
  view.job.status.runs[0].pod_name = pod_of(6);
  const Status status = ends(view, 75).status;
  EXPECT_EQ(status.history.size(), 5u);
  EXPECT_EQ(status.history.back().attempt, 6);
}

TEST(Stages, TheLastEndsOfAStageThatHasEndedChangeNothingOfIt) {
  JobView view = staged_job({kVerify});
  view.job.spec.heartbeat = Heartbeat{};
  add_pod(view, 1, PodPhase::kRunning);
  StageStatus& main = view.job.status.stages[0];
  main.phase = StagePhase::kFailed;
  main.completion_time = now();
  view.job.status.conditions.push_back({"FailureTarget", true, "BackoffLimitExceeded", "m", now()});
  LeaseView lease;
  lease.attempt = 1;
  lease.deferrals = 7;
  view.begun().lease = lease;
  EXPECT_EQ(after(view).stages[0], main);
}

TEST(Stages, BackOffsBeginAnew) {
  JobView view = staged_job({kRefine});
  view.job.status.stage = 1;
  view.job.status.stages[0].phase = StagePhase::kSucceeded;
  view.job.status.stages[1].phase = StagePhase::kRunning;
  view.job.status.stages[1].start_time = now() - seconds(9);
  add_history(view, Outcome::kFailed, 5);
  for (HistoryEntry& entry : view.job.status.history) entry.stage = "main";
  view.job.status.attempt = view.job.status.runs[0].attempt = 6;
  view.job.status.runs[0].pod_name = pod_of(6);
  const Status status = ends(view, 1).status;
  EXPECT_LE(*status.runs[0].next_attempt_time - now(), seconds(10));
}

TEST(Stages, ASuspensionBeforeAStageBeganIsNoneOfItsTime) {
  JobView view = staged_job({kVerify});
  set_in_all(view, &Spec::suspend, true);
  ends(view, 0);
  EXPECT_EQ(view.job.status.stages[1].phase, StagePhase::kPending);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kStageStarting);
  view.pods.clear();
  go_on(view, after(view));
  ASSERT_EQ(view.job.status.phase, Phase::kSuspended);
  set_in_all(view, &Spec::suspend, false);
  const Status resumed = after(view, now() + seconds(40));
  EXPECT_EQ(resumed.suspended, seconds(40));
  EXPECT_EQ(resumed.stages[1].suspended, seconds(0));
}

TEST(Stages, OneThatAnEditHasEndedIsLeftOut) {
  JobView view = staged_job({kVerify, kCleanup});
  view.job.status.stages[1].phase = StagePhase::kSkipped;
  const Status status = ends(view, 0).status;
  EXPECT_EQ(status.stage, 2u);
  EXPECT_EQ(ends(view, 0).status.phase, Phase::kFailed) << "verify has not succeeded";
}

TEST(Stages, TheNextLeaseWaitsForTheLongestOneBefore) {
  JobView view = staged_job({kCleanup});
  for (Stage& stage : view.job.stages) stage.spec.heartbeat = Heartbeat{seconds(10), {}};
  view.job.stages[0].spec.heartbeat = Heartbeat{seconds(600), {}};
  view.job.spec = view.job.stages[0].spec;
  ends(view, 1);
  view.job.status.stage = 1;
  view.job.status.stages[0].phase = StagePhase::kFailed;
  view.job.status.stages[1].phase = StagePhase::kRunning;
  view.job.status.stages[1].start_time = now();
  view.job.status.phase = Phase::kRunning;
  view.job.status.attempt = view.job.status.runs[0].attempt = 2;
  view.job.status.runs[0].pod_name = pod_of(2);
  view.job.status.runs[0].next_attempt_time.reset();
  view.job.spec = view.job.stages[1].spec;
  view.pods.clear();
  view.job.status.runs[0].pod_uid = add_pod(view, 2, PodPhase::kRunning).uid;
  LeaseView lease;
  lease.uid = "lease";
  lease.attempt = 2;
  lease.granted = "train-1/pod-uid-1";
  lease.renewed = true;
  view.begun().lease = lease;
  view.begun().observed.lease.taken_for = seconds(599);
  EXPECT_TRUE(all<WriteLease>(settle(view)).empty());
  view.begun().observed.lease.taken_for = seconds(600);
  EXPECT_EQ(all<WriteLease>(settle(view)).size(), 1u);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
