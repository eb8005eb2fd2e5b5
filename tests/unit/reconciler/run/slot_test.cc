// A job of a pool: its attempts have their places on workers (docs/internals/workers.md).
#include <gtest/gtest.h>

#include "reconciler/run/slot.h"
#include "reconciler/shards.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

PoolView::Worker worker(int number) {
  return {"worker-" + std::to_string(number), "lease-" + std::to_string(number), seconds(30)};
}

// As the operator decodes a job with workerPool.
JobView pooled(JobView view) {
  view.job.spec.pool = PoolRef{"thumbnails", "", std::nullopt};
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.spec.first_container = kSlotContainer;
  view.job.has_pool = true;
  return view;
}
JobView offered(JobView view, int slots = 1) {
  view = pooled(std::move(view));
  for (int i = 1; i <= slots; ++i) view.observed.pool.offers.push_back(worker(i));
  return view;
}

SlotView slot(AtPlace at, int exit_code = 0) {
  SlotView seen;
  seen.at = at;
  seen.is_known = true;
  seen.exit_code = exit_code;
  return seen;
}

// As the operator shows the places of the status's runs.
void show(JobView& view, const std::vector<SlotView>& slots) {
  view.pods.clear();
  view.runs.assign(view.job.status.runs.size(), {});
  for (std::size_t position = 0; position < slots.size(); ++position) {
    const Run& run = view.job.status.runs[position];
    view.runs[position].slot = slots[position];
    view.runs[position].observed.confirmed = true;
    if (run.open() || !slots[position].left) {
      view.pods.push_back(slot_as_pod(view.job, run, slots[position]));
    }
  }
}

// Its attempt 1 is on worker-1 since 100 s, and this is known of it.
JobView at_worker(const SlotView& seen) {
  JobView view = pooled(running_job());
  auto& run = view.job.status.runs[0];
  run.worker_name = worker(1).name;
  run.worker_uid = worker(1).uid;
  show(view, {seen});
  return view;
}

// Its runs 0 and 1 are on worker-1 and worker-2.
JobView two_runs_at_workers() {
  JobView view = pooled(job_of_runs(2, 2, 2));
  for (auto& run : view.job.status.runs) {
    run.worker_name = worker(static_cast<int>(run.attempt)).name;
    run.worker_uid = worker(static_cast<int>(run.attempt)).uid;
    run.pod_uid.clear();
  }
  return view;
}

bool writes_only_status(const Decision& decision) {
  return decision.writes.size() == all<WriteStatus>(decision).size();
}

TEST(Workers, AnAttemptGetsTheOfferedSlotAndNoPod) {
  const Decision decision = settle(offered(new_job(), 2));
  EXPECT_TRUE(writes_only_status(decision));
  const Status status = all<WriteStatus>(decision).at(0).status;
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(only(status.runs).worker_name, "worker-1");
  EXPECT_EQ(status.runs[0].worker_uid, "lease-1");
  EXPECT_EQ(status.runs[0].worker_lease_duration, seconds(30));
  EXPECT_EQ(status.waiting->reason, Reason::kWorkerStarting);
}

TEST(Workers, AJobWithoutASlotAsksForOneAndSaysSoLater) {
  JobView view = pooled(new_job());
  Decision decision = settle(view);
  EXPECT_EQ(decision.awaits_slots, 1);
  EXPECT_TRUE(decision.writes.empty());
  view.observed.pool.wait = {seconds(60), seconds(60)};
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kPending);
  EXPECT_EQ(status.waiting->reason, Reason::kWorkerAwaited);
  EXPECT_FALSE(status.holds("Stalled"));
}

TEST(Workers, AJobWithoutASlotSaysSoAfterAMinuteHoweverTheLineMoves) {
  JobView view = pooled(new_job());
  view.observed.pool.wait = {seconds(10), seconds(0)};
  EXPECT_EQ(settle(view).wake_after, seconds(20)) << "seldom";
  view.observed.pool.wait = {seconds(52), seconds(0)};
  EXPECT_EQ(settle(view).wake_after, seconds(8));
}

TEST(Workers, AMissingPoolIsTroubleForAPersonAndOverOnceThereIsOne) {
  JobView view = pooled(new_job());
  view.observed.pool.no_pool = true;
  view.observed.pool.wait = {seconds(60), seconds(60)};
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPoolMissing);
  EXPECT_TRUE(view.job.status.holds("Stalled"));
  view.observed.pool.no_pool = false;
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, Reason::kWorkerAwaited);
  EXPECT_FALSE(status.holds("Stalled"));
}

TEST(Workers, RunsOpenAsFarAsThereAreSlots) {
  const JobView view = offered(job_of_runs(10, 6, 0), 4);
  const Decision decision = settle(view);
  const Status status = all<WriteStatus>(decision).at(0).status;
  EXPECT_EQ(status.runs.size(), 4U);
  EXPECT_EQ(status.runs[3].worker_uid, "lease-4");
  EXPECT_EQ(decision.awaits_slots, 2) << "parallelism allows six";
}

TEST(Workers, ThePermitOfAQueueComesBeforeTheSlot) {
  JobView view = offered(new_job());
  view.job.queue = QueueRef{"encode", 0, ""};
  EXPECT_TRUE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 0);
  view.observed.permit.admitted = true;
  EXPECT_EQ(after(view).phase, Phase::kRunning);
}

TEST(Workers, AnEndWithZeroIsSuccess) {
  const WriteStatus end = written(at_worker(slot(AtPlace::kEnded)));
  EXPECT_EQ(end.status.phase, Phase::kSucceeded);
  EXPECT_EQ(only(end.status.history).worker_name, "worker-1") << "where its log is";
  EXPECT_EQ(end.status.history[0].exit_code, 0);
}

TEST(Workers, AnotherEndIsAFailureAndCountsSo) {
  SlotView seen = slot(AtPlace::kEnded, 3);
  seen.result = "no such object";
  const Status status = after(at_worker(seen));
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.history[0].exit_code, 3);
}

TEST(Workers, ExitCodesMeetTheFailurePolicy) {
  JobView view = at_worker(slot(AtPlace::kEnded, 42));
  view.job.spec.pod_failure_policy = {on_exit_code(PolicyAction::kFailJob, {42})};
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(status, "Failed", "PodFailurePolicy"));
}

TEST(Workers, ALostWorkerCostsADisruptionAndTheNextPlaceFollowsAtOnce) {
  JobView view = at_worker(slot(AtPlace::kLost));
  view.observed.pool.offers = {worker(2)};
  const WriteStatus end = written(view);
  EXPECT_EQ(end.status.disruptions, 1);
  EXPECT_EQ(end.status.history[0].reason, Reason::kWorkerLost);
  ASSERT_TRUE(end.status.runs[0].open());
  EXPECT_EQ(end.status.runs[0].attempt, 2);
  EXPECT_EQ(end.status.runs[0].worker_uid, "lease-2");
}

TEST(Workers, ALostWorkerSaysWhyItWasCutOff) {
  SlotView seen = slot(AtPlace::kLost);
  seen.lost_why = "its pod has ended";
  EXPECT_EQ(after(at_worker(seen)).history[0].message,
            "worker worker-1 is cut off: its pod has ended");
}

SlotView killed(bool beside_others) {
  SlotView seen = slot(AtPlace::kLost);
  seen.out_of_memory = true;
  seen.beside_others = beside_others;
  return seen;
}

TEST(Workers, AnAttemptThatAloneRanItsWorkerOutOfMemoryHasFailed) {
  JobView view = at_worker(killed(/*beside_others=*/false));
  view.observed.pool.offers = {worker(2)};
  const Status status = after(view);
  EXPECT_EQ(status.history[0].outcome, Outcome::kFailed);
  EXPECT_EQ(status.history[0].reason, Reason::kOOMKilled);
  EXPECT_EQ(status.history[0].exit_code, 137);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.disruptions, 0);
  EXPECT_FALSE(status.runs[0].alone);
  view.job.spec.pod_failure_policy = {on_exit_code(PolicyAction::kFailJob, {137})};
  EXPECT_TRUE(has_condition(after(view), "Failed", "PodFailurePolicy")) << "as in a pod of its own";
}

TEST(Workers, WhoWasBesideOthersOnAWorkerOutOfMemoryIsLostAndIsAloneFromThenOn) {
  JobView view = at_worker(killed(/*beside_others=*/true));
  view.observed.pool.offers = {worker(2)};
  const Status lost = after(view);
  EXPECT_EQ(lost.history[0].outcome, Outcome::kLost);
  EXPECT_EQ(lost.history[0].reason, Reason::kWorkerOOMKilled);
  EXPECT_EQ(lost.disruptions, 1);
  EXPECT_TRUE(lost.runs[0].alone);
  EXPECT_FALSE(lost.runs[0].open()) << "a slot beside others is none for it";
  view.job.status = lost;
  view.job.status.runs[0].next_attempt_time = now();
  SlotView left = killed(true);
  left.left = true;
  show(view, {left});
  const Decision waits = settle(view);
  EXPECT_EQ(waits.awaits_empty, 1);
  EXPECT_EQ(waits.awaits_slots, 0);
  view.observed.pool.wait = {seconds(60), seconds(60)};
  EXPECT_EQ(after(view).waiting->reason, Reason::kAwaitsEmptyWorker);
  view.observed.pool.empty = {worker(3)};
  const Status placed = after(view);
  EXPECT_EQ(placed.runs.at(0).worker_uid, "lease-3");
  EXPECT_TRUE(placed.runs[0].alone) << "until the run ends";
  view.job.status = placed;
  show(view, {killed(/*beside_others=*/false)});
  view.observed.pool.empty.clear();
  const Status guilty = after(view);
  EXPECT_EQ(guilty.history[1].reason, Reason::kOOMKilled);
  EXPECT_EQ(guilty.failures, 1);
  EXPECT_TRUE(guilty.runs[0].alone);
}

TEST(Workers, RunsThatNeedAWorkerOfTheirOwnHoldUpNoOtherRun) {
  JobView view = two_runs_at_workers();
  view.job.spec.completions = 4;
  view.job.spec.parallelism = 4;
  for (auto& run : view.job.status.runs) {
    run.next_attempt_time = now();
    run.alone = run.index == 0;
  }
  SlotView left = slot(AtPlace::kStopped);
  left.left = true;
  show(view, {left, left});
  view.observed.pool.offers = {worker(3)};
  const Decision one = settle(view);
  const Status status = all<WriteStatus>(one).at(0).status;
  EXPECT_FALSE(status.runs.at(0).open());
  EXPECT_EQ(status.runs.at(1).worker_uid, "lease-3");
  EXPECT_EQ(one.awaits_empty, 1);
  EXPECT_EQ(one.awaits_slots, 2) << "the two that have not begun";
  view.observed.pool.offers.clear();
  view.observed.pool.empty = {worker(4)};
  view.job.status.runs[0].alone = false;
  view.job.status.runs[1].alone = true;
  const Status other = all<WriteStatus>(settle(view)).at(0).status;
  EXPECT_FALSE(other.runs.at(0).open());
  EXPECT_EQ(other.runs.at(1).worker_uid, "lease-4") << "behind one that has no slot";
}

TEST(Workers, AStopThatNobodyOrderedIsADisruption) {
  const Status status = after(at_worker(slot(AtPlace::kStopped)));
  EXPECT_EQ(status.history[0].outcome, Outcome::kLost);
  EXPECT_EQ(status.disruptions, 1);
}

TEST(Workers, AHandBackCostsNothingAndDoesNotSpin) {
  JobView view = at_worker(slot(AtPlace::kReturned));
  view.observed.pool.offers = {worker(2)};
  Status status = after(view);
  EXPECT_EQ(status.history[0].outcome, Outcome::kHandedBack);
  EXPECT_EQ(status.failures + status.disruptions, 0);
  EXPECT_EQ(status.runs[0].attempt, 2);
  view.job.status = status;
  show(view, {slot(AtPlace::kReturned)});
  status = after(view);
  EXPECT_FALSE(status.runs[0].open());
  EXPECT_EQ(*status.runs[0].next_attempt_time, now() + seconds(1)) << "the second in a row";
}

TEST(Workers, AnUnreportedAttemptWaitsForItsStartDeadline) {
  JobView view = at_worker(slot(AtPlace::kUnknown));
  view.job.spec.start_deadline = seconds(101);
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  view.job.spec.start_deadline = seconds(99);
  view.runs[0].slot->is_known = false;
  EXPECT_EQ(after(view).phase, Phase::kRunning) << "its Leases are not known";
  view.runs[0].slot->is_known = true;
  EXPECT_EQ(after(view).history.at(0).outcome, Outcome::kStartTimeout);
}

TEST(Workers, ACommandWithoutProgressIsHung) {
  SlotView seen = slot(AtPlace::kRunning);
  seen.stalled_for = seconds(29);
  JobView view = at_worker(seen);
  view.job.spec.pool->progress_deadline = seconds(30);
  const Decision waits = settle(view);
  EXPECT_LE(*waits.wake_after, seconds(1));
  view.runs[0].slot->stalled_for = seconds(30);
  const Status status = after(view);
  EXPECT_EQ(status.history.at(0).outcome, Outcome::kHung);
  EXPECT_EQ(status.failures, 1);
}

TEST(Workers, AnAttemptThatRunsTooLongEnds) {
  JobView view = at_worker(slot(AtPlace::kRunning));
  view.job.spec.attempt_deadline = seconds(99);
  EXPECT_EQ(after(view).history.at(0).reason, Reason::kAttemptDeadlineExceeded);
}

TEST(Workers, AShortAttemptCostsNoWriteBeforeItsEnd) {
  JobView view = at_worker(slot(AtPlace::kRunning));
  view.job.status.runs[0].start_time = now() - seconds(2) + Duration(4711);
  show(view, {slot(AtPlace::kRunning)});
  EXPECT_TRUE(settle(view).writes.empty());
  view.job.status.runs[0].start_time = now() - seconds(4) + Duration(4711);
  show(view, {slot(AtPlace::kRunning)});
  EXPECT_EQ(after(view).waiting->reason, Reason::kWorkerRunning);
}

// Rule 4 of the protocol.
TEST(Workers, TheNextPlaceWaitsUntilTheLastIsEmpty) {
  SlotView seen = slot(AtPlace::kRunning);
  JobView view = at_worker(seen);
  view.job.spec.attempt_deadline = seconds(99);
  view.job.spec.retry_backoff.initial = seconds(1);
  view.job.status = after(view);
  view.job.status.runs[0].next_attempt_time = now();
  view.observed.pool.offers = {worker(2)};
  show(view, {seen});
  const Decision waits = settle(view, now() + seconds(5));
  for (const WriteStatus& write : all<WriteStatus>(waits)) {
    EXPECT_EQ(write.status.attempt, 1) << "the command may still run";
    EXPECT_EQ(write.status.waiting->reason, Reason::kWorkerStopping);
  }
  seen.at = AtPlace::kStopped;
  seen.left = true;
  show(view, {seen});
  EXPECT_EQ(after(view, now() + seconds(5)).runs.at(0).worker_uid, "lease-2");
}

// A worker's pod may have the name of a node.
TEST(Workers, ANodeThatIsGoneIsNoWorkersEnd) {
  SlotView seen = slot(AtPlace::kRunning);
  JobView view = at_worker(seen);
  view.job.spec.attempt_deadline = seconds(99);
  view.observed.nodes[worker(1).name].missing_for = seconds(1000);
  view.observed.pool.offers = {worker(2)};
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  view.job.status = status;
  view.job.status.runs[0].next_attempt_time = now();
  show(view, {seen});
  const Decision waits = settle(view, now() + seconds(5));
  EXPECT_GT(*waits.wake_after, Duration::zero()) << "it does not spin";
  for (const WriteStatus& write : all<WriteStatus>(waits)) EXPECT_EQ(write.status.attempt, 1);
}

TEST(Workers, AJobThatIsOutOfTimeFailsOnceItsPlaceIsEmpty) {
  SlotView seen = slot(AtPlace::kRunning);
  JobView view = at_worker(seen);
  view.job.spec.attempt_deadline = seconds(99);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kBackoff);
  view.job.spec.active_deadline = seconds(1);
  show(view, {seen});
  view.job.status = after(view);
  ASSERT_FALSE(is_terminal(view.job.status.phase)) << "the command still runs";
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kRunsStopped);
  EXPECT_TRUE(view.job.status.holds("FailureTarget"));
  seen.left = true;
  show(view, {seen});
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

TEST(Workers, AJobFailsOnceTheEarlierAttemptsOfItsRunsHaveLeft) {
  SlotView seen = slot(AtPlace::kRunning);
  JobView view = two_runs_at_workers();
  view.job.status.runs[0].next_attempt_time = now();
  view.job.spec.backoff_limit = 0;
  show(view, {seen, slot(AtPlace::kEnded, 1)});
  view.job.status = after(view);
  ASSERT_FALSE(is_terminal(view.job.status.phase)) << "run 0 still runs on worker-1";
  EXPECT_TRUE(view.job.status.holds("FailureTarget"));
}

TEST(Workers, CancelledMeansThatNothingRuns) {
  SlotView seen = slot(AtPlace::kRunning);
  JobView view = at_worker(seen);
  view.job.spec.cancel = view.job.cancel = true;
  const Decision asks = settle(view);
  EXPECT_TRUE(writes_only_status(asks)) << "no pod is deleted";
  view.job.status = all<WriteStatus>(asks).at(0).status;
  EXPECT_EQ(view.job.status.phase, Phase::kCancelling);
  view.observed.cancelling_for = seconds(1000);
  show(view, {seen});
  EXPECT_EQ(after(view).phase, Phase::kCancelling) << "however long it takes";
  EXPECT_EQ(after(view).waiting->reason, Reason::kWorkerStopping);
  seen.left = true;
  show(view, {seen});
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

TEST(Workers, AJobThatHasFailedWaitsForItsOtherRuns) {
  JobView view = two_runs_at_workers();
  view.job.spec.backoff_limit = 0;
  show(view, {slot(AtPlace::kEnded, 1), slot(AtPlace::kRunning)});
  view.job.status = after(view);
  EXPECT_FALSE(is_terminal(view.job.status.phase));
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kRunsStopped);
  EXPECT_FALSE(view.job.status.waiting->deadline);
  ASSERT_EQ(view.job.status.runs.size(), 2U);
  SlotView ended = slot(AtPlace::kEnded, 1);
  ended.left = true;
  SlotView runs_on = slot(AtPlace::kRunning);
  show(view, {ended, runs_on});
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  runs_on.left = true;
  show(view, {ended, runs_on});
  EXPECT_EQ(after(view).phase, Phase::kFailed);
}

// The record alone says where the attempt runs.
TEST(Workers, ARunFailsForGoodOnceItsPlaceIsEmpty) {
  JobView view = two_runs_at_workers();
  view.job.spec.indexed = true;
  view.job.spec.backoff_limit_per_index = 0;
  view.job.spec.pool->progress_deadline = seconds(30);
  SlotView hangs = slot(AtPlace::kRunning);
  hangs.stalled_for = seconds(30);
  show(view, {hangs, slot(AtPlace::kRunning)});
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.history.at(0).outcome, Outcome::kHung);
  ASSERT_EQ(view.job.status.runs.size(), 2U) << "the hung command still runs";
  view.observed.pool.offers = {worker(3)};
  show(view, {hangs, slot(AtPlace::kRunning)});
  for (const WriteStatus& write : all<WriteStatus>(settle(view))) {
    EXPECT_EQ(write.status.attempt, 2) << "its budget is spent";
    EXPECT_TRUE(write.status.failed.empty());
  }
  hangs.left = true;
  show(view, {hangs, slot(AtPlace::kRunning)});
  const Status status = after(view);
  EXPECT_TRUE(status.failed.contains(0));
  EXPECT_EQ(status.runs.size(), 1U);
}

// Who may create pods can copy a name and a mark, and an edit of the status can remove the mark.
TEST(Workers, TheWorkersUidAloneSaysThePlaceOfAnAttempt) {
  JobView view = at_worker(slot(AtPlace::kEnded, 3));
  PodView forged = view.pods[0];
  forged.slot = false;
  forged.uid = "forged";
  forged.phase = PodPhase::kSucceeded;
  view.pods.insert(view.pods.begin(), forged);
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  view.job.status.runs[0].start_time.reset();
  show(view, {slot(AtPlace::kEnded)});
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(Workers, TheCheckpointGoesOnRecordWithTheEnd) {
  SlotView seen = slot(AtPlace::kLost);
  seen.checkpoint = "frame 12";
  seen.progress = "12/50";
  JobView view = at_worker(seen);
  view.observed.pool.offers = {worker(2)};
  const Status status = after(view);
  EXPECT_EQ(status.runs.at(0).checkpoint, "frame 12");
  EXPECT_EQ(status.history.at(0).progress, "12/50");
}

TEST(Workers, AStagesResultIsWhatItsCommandLeft) {
  SlotView seen = slot(AtPlace::kEnded);
  seen.result = "s3://bucket/page-7";
  JobView view = at_worker(seen);
  view.job.stages = {{kFirstStage, false, false, view.job.spec},
                     {"next", false, false, view.job.spec}};
  view.job.status.stages.resize(2);
  view.job.status.stages[0].name = kFirstStage;
  view.job.status.stages[0].phase = StagePhase::kRunning;
  view.job.status.stages[1].name = "next";
  view.observed.pool.offers = {worker(2)};
  EXPECT_EQ(after(view).stages.at(0).result, "s3://bucket/page-7");
}

TEST(Workers, JobsOfAPoolBelongToTheShardOfTheirNamespace) {
  EXPECT_EQ(shard_key(pooled(new_job()).job), "default");
  EXPECT_EQ(shard_key(new_job().job), kUid);
}

// Its run 1 still runs on worker-2, and spec.completions fell to 1 meanwhile.
JobView suspended_with_fewer_runs() {
  JobView view = two_runs_at_workers();
  for (auto& run : view.job.status.runs) run.next_attempt_time = now() - seconds(9);
  view.job.status.phase = Phase::kSuspended;
  view.job.status.waiting = Waiting{Reason::kSuspended, "m", "n", std::nullopt};
  SlotView left = slot(AtPlace::kStopped);
  left.left = true;
  show(view, {left, slot(AtPlace::kRunning)});
  view.job.spec.completions = view.job.spec.parallelism = 1;
  view.observed.pool.offers = {worker(3)};
  return view;
}

TEST(Workers, ARunBeyondFewerCompletionsKeepsItsPlaceUntilItIsEmpty) {
  JobView view = suspended_with_fewer_runs();
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).runs.size(), 2u);
  view.job.spec.suspend = false;
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kSuspended);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kWorkerStopping);
  ASSERT_EQ(view.job.status.runs.size(), 2u);
  view.job.spec.suspend = true;
  EXPECT_EQ(after(view).waiting->reason, Reason::kSuspended);
  view.job.spec.suspend = false;
  SlotView left = slot(AtPlace::kStopped);
  left.left = true;
  show(view, {left, left});
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(only(view.job.status.runs).index, 0);
  show(view, {left});
  EXPECT_EQ(after(view).phase, Phase::kRunning);
}

TEST(Workers, ACancelledJobWaitsForTheRunsBeyondFewerCompletions) {
  JobView view = suspended_with_fewer_runs();
  view.job.spec.cancel = true;
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kCancelling);
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
  SlotView left = slot(AtPlace::kStopped);
  left.left = true;
  show(view, {left, left});
  EXPECT_EQ(after(view).phase, Phase::kCancelled);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
