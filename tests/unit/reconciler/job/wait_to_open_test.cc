// A job with a queue: it starts once it is admitted, and says that it waits.
#include <gtest/gtest.h>

#include "reconciler/run/slot.h"
#include "reconciler/shards.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView queued(JobView view) {
  view.job.queue = QueueRef{"encode", 0, ""};
  return view;
}
JobView admitted(JobView view) {
  view = queued(std::move(view));
  view.observed.permit.admitted = true;
  return view;
}
JobView long_waiting(JobView view) {
  view = queued(std::move(view));
  view.observed.permit.waited = seconds(1);
  return view;
}

TEST(Queues, AJobAsksForAPermitAndStartsWithIt) {
  const Decision asks = settle(queued(new_job()));
  EXPECT_TRUE(asks.awaits_permit);
  EXPECT_TRUE(asks.writes.empty());
  EXPECT_EQ(asks.wake_after, seconds(1)) << "then it says that it waits";
  const Status status = after(admitted(new_job()));
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.attempt, 1);
}

TEST(Queues, AJobWithoutAQueueNeedsNoPermit) {
  EXPECT_FALSE(settle(new_job()).awaits_permit);
  EXPECT_EQ(after(new_job()).phase, Phase::kRunning);
}

TEST(Queues, AJobThatWaitsSaysSoOnce) {
  JobView view = long_waiting(new_job());
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kPending);
  EXPECT_EQ(status.waiting->reason, Reason::kQueued);
  EXPECT_FALSE(status.waiting->deadline);
  EXPECT_FALSE(status.holds("Stalled"));
  view.job.status = status;
  const Decision again = settle(view, now() + std::chrono::hours(100));
  EXPECT_TRUE(again.writes.empty());
  EXPECT_TRUE(again.awaits_permit);
}

TEST(Queues, AMissingQueueIsTroubleForAPerson) {
  JobView view = long_waiting(new_job());
  view.observed.permit.no_queue = true;
  Status status = after(view);
  EXPECT_EQ(status.waiting->reason, Reason::kQueueMissing);
  EXPECT_TRUE(status.holds("Stalled"));
  view.job.status = status;
  view.observed.permit.no_queue = false;
  view.observed.permit.waited = seconds(0);  // the operator was started anew
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kQueued);
  EXPECT_FALSE(view.job.status.holds("Stalled"));
  view.observed.permit.no_queue = true;
  view.job.status.waiting->since = now() - seconds(60);
  const Status deleted = after(view);
  EXPECT_EQ(deleted.waiting->reason, Reason::kQueueMissing) << "the queue was deleted";
  EXPECT_EQ(deleted.waiting->since, now() - seconds(60)) << "it is the same wait";
  EXPECT_EQ(deleted.suspended, seconds(0)) << "which is counted once, when it ends";
}

TEST(Queues, ALostAttemptKeepsThePermitForTheNextOne) {
  JobView view = queued(running_job());
  view.job.status.runs[0].pod_uid = "pod-uid-1";
  PodView& pod = add_pod(view, 1, PodPhase::kFailed);
  pod.disruption_target = true;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kRunning) << "its phase has the permit all the time";
  EXPECT_EQ(status.attempt, 2);
}

TEST(Queues, AfterItsBackOffAJobAsksAgain) {
  JobView view = queued(job_in(Phase::kBackoff));
  const Time due = *view.job.status.runs[0].next_attempt_time;
  EXPECT_FALSE(settle(view, due - seconds(1)).awaits_permit) << "a job in back-off needs none yet";
  EXPECT_TRUE(settle(view, due).awaits_permit);
  EXPECT_EQ(after(view, due).phase, Phase::kBackoff);
}

TEST(Queues, TimeInTheQueueCostsNoDeadline) {
  JobView view = long_waiting(job_in(Phase::kBackoff));
  view.job.spec.active_deadline = seconds(600);
  view.job.status.start_time = now() - seconds(300);
  view.job.status.suspended = seconds(0);
  view.job.status.runs[0].next_attempt_time = now();
  view.job.status = after(view);
  ASSERT_EQ(view.job.status.waiting->reason, Reason::kQueued);
  const Time later = now() + seconds(100'000);
  EXPECT_TRUE(settle(view, later).writes.empty()) << "it does not run out of time";
  view.observed.permit.admitted = true;
  const Status status = after(view, later);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.suspended, seconds(100'000));
  EXPECT_EQ(status.waiting->deadline, later + seconds(300)) << "300 s were left when it queued";
}

TEST(Queues, TheFirstWaitIsBeforeTheClockStarts) {
  JobView view = long_waiting(new_job());
  view.job.spec.active_deadline = seconds(600);
  view.job.status = after(view);
  view.observed.permit.admitted = true;
  const Time later = now() + seconds(5000);
  const Status status = after(view, later);
  EXPECT_EQ(status.suspended, seconds(0));
  EXPECT_EQ(status.waiting->deadline, later + seconds(600));
}

// S19: an owner that has seen the new attempt forgets the admission, and an earlier owner, which
// may still believe in it, cannot use it any more.
TEST(Queues, AnAdmittedJobThatRestsGivesItsPermitBackByItsAttempt) {
  JobView view = admitted(new_job());
  view.job.spec.suspend = true;
  Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSuspended);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_TRUE(status.runs.empty());

  view = admitted(job_in(Phase::kSuspended));
  view.job.spec.suspend = true;
  const std::int64_t before = view.job.status.attempt;
  EXPECT_EQ(after(view).attempt, before + 1) << "also if somebody else suspended it";
  view.observed.permit.admitted = false;
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());

  view = admitted(new_job());
  view.job.spec.parallelism = 0;
  status = after(view);
  EXPECT_EQ(status.waiting->reason, Reason::kPaused);
  EXPECT_EQ(status.attempt, 1);
}

TEST(Queues, AnAdmittedJobThatEndsNeedsNotGiveBack) {
  JobView view = admitted(new_job());
  view.job.spec.cancel = true;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kCancelled);
  EXPECT_EQ(status.attempt, 0);
}

TEST(Queues, AJobOfManyRunsHoldsOnePermit) {
  JobView view = queued(job_of_runs(4, 2, 1));
  const Decision decision = settle(view);
  EXPECT_FALSE(decision.awaits_permit) << "a further run needs no further permit";
  JobView fresh = queued(job_of_runs(4, 2, 0));
  fresh.job.status = Status();
  EXPECT_TRUE(settle(fresh).awaits_permit);
  fresh.observed.permit.admitted = true;
  EXPECT_EQ(after(fresh).runs.size(), 2u);
}

TEST(Queues, AJobThatHasAPermitWaitsForItsTurnToCreateAPod) {
  JobView view = admitted(new_job());
  view.observed.may_create = false;
  const Decision decision = settle(view);
  EXPECT_TRUE(decision.awaits_creation);
  EXPECT_FALSE(decision.awaits_permit);
}

TEST(Queues, TheShardIsThatOfTheNamespace) {
  JobView view = new_job();
  EXPECT_EQ(shard_key(view.job), view.job.uid);
  EXPECT_EQ(shard_key(queued(view).job), view.job.namespace_);
}

// As the operator decodes a job with workerPool and queue.
JobView queued_and_pooled() {
  JobView view = new_job();
  view.job.spec.pool = PoolRef{"thumbnails", "", std::nullopt};
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.spec.first_container = kSlotContainer;
  view.job.has_pool = true;
  view.job.queue = QueueRef{"encode", 0, ""};
  view.observed.pool.wait = {seconds(60), seconds(60)};
  return view;
}

TEST(WorkersLimits, AJobWithoutItsPoolAsksForNoPermitUntilThereIsOne) {
  JobView view = queued_and_pooled();
  view.observed.pool.no_pool = true;
  EXPECT_FALSE(settle(view).awaits_permit);
  view.job.status = after(view);
  ASSERT_TRUE(view.job.status.waiting);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPoolMissing);
  EXPECT_TRUE(view.job.status.holds("Stalled"));
  EXPECT_FALSE(settle(view).awaits_permit);
  view.observed.pool.no_pool = false;
  EXPECT_TRUE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 0);
}

TEST(WorkersLimits, AJobOfAFullPoolAsksForItsPermitFirst) {
  JobView view = queued_and_pooled();
  EXPECT_TRUE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 0);
  view.observed.permit.admitted = true;
  EXPECT_FALSE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 1);
}

TEST(WorkersLimits, AnAdmittedJobWithoutItsPoolGivesItsPermitBackAtOnceAndSaysWhy) {
  JobView view = queued_and_pooled();
  view.observed.permit.admitted = true;
  view.observed.pool.no_pool = true;
  view.observed.pool.wait = {};
  view.observed.since_write = Duration::zero();
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.attempt, 1) << "nobody can start it with this admission any more";
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPoolMissing);
  EXPECT_TRUE(view.job.status.runs.empty());
  view.observed.permit.admitted = false;
  EXPECT_FALSE(settle(view).awaits_permit);
  view.observed.pool.no_pool = false;
  EXPECT_TRUE(settle(view).awaits_permit) << "it asks again once there is a pool";
}

// As long as it says Queued, its queue would admit it again and again.
TEST(WorkersLimits, AJobThatSaidThatItIsQueuedDoesNotSayItWithTheWriteThatGivesThePermitBack) {
  for (const Phase phase : {Phase::kPending, Phase::kBackoff}) {
    for (const Duration left : {Duration::zero(), Duration(seconds(60))}) {
      JobView view = queued_and_pooled();
      if (phase == Phase::kBackoff) {
        view.job.status = job_in(Phase::kBackoff).job.status;
        for (auto& run : view.job.status.runs) run.next_attempt_time = now() + left;
      }
      view.job.status.phase = phase;
      view.job.status.waiting = Waiting{Reason::kQueued, "its queue is full", "it waits", now()};
      view.observed.permit.admitted = true;
      view.observed.pool.no_pool = true;
      view.observed.pool.wait = {};
      view.observed.since_write = Duration::zero();
      const Status next = after(view);
      EXPECT_EQ(next.attempt, view.job.status.attempt + 1);
      EXPECT_FALSE(next.says_queued());
    }
  }
}

TEST(WorkersLimits, AJobWithAnOpenRunKeepsItsPermitWithoutItsPool) {
  JobView view = job_in(Phase::kRunning);
  const JobView pooled = queued_and_pooled();
  view.job.spec.pool = pooled.job.spec.pool;
  view.job.queue = pooled.job.queue;
  view.observed.permit.admitted = true;
  view.observed.pool.no_pool = true;
  for (const auto& write : all<WriteStatus>(settle(view))) {
    EXPECT_EQ(write.status.attempt, view.job.status.attempt);
  }
}

TEST(WorkersLimits, ANextAttemptWithoutItsPoolAsksForNoPermit) {
  JobView view = job_in(Phase::kBackoff);
  const JobView pooled = queued_and_pooled();
  view.job.spec.pool = pooled.job.spec.pool;
  view.job.queue = pooled.job.queue;
  view.observed = pooled.observed;
  view.observed.pool.no_pool = true;
  for (auto& run : view.job.status.runs) run.next_attempt_time = now();
  for (const auto policy :
       {PodReplacementPolicy::kFailed, PodReplacementPolicy::kTerminatingOrFailed}) {
    view.job.spec.pod_replacement = policy;
    EXPECT_FALSE(settle(view).awaits_permit);
    EXPECT_EQ(after(view).waiting->reason, Reason::kPoolMissing);
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
