// What a replica knows of a queue: from its jobs, its own writes and the cache.
#include "operator/queues/queue_book.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/rng.h"

namespace holdfast::queues {
namespace {

using reconciler::Phase;
using std::chrono::seconds;

const Time kNow = Time(seconds(1'800'000'000));

codecs::CachedJob job_in(Phase phase, std::int64_t attempt = 0, const std::string& uid = "u-1") {
  codecs::CachedJob job;
  job.namespace_ = job.job.namespace_ = "media";
  job.name = job.job.name = "job-" + uid;
  job.uid = job.job.uid = uid;
  job.job.created = kNow;
  job.job.queue = reconciler::QueueRef{"encode", 0, "k"};
  job.job.status.phase = phase;
  job.job.status.attempt = attempt;
  return job;
}

codecs::CachedJob queued_job(Phase phase = Phase::kPending, std::int64_t attempt = 0) {
  codecs::CachedJob job = job_in(phase, attempt);
  job.job.status.waiting =
      reconciler::Waiting{reconciler::Reason::kQueued, "m", "n", std::nullopt, kNow - seconds(60)};
  return job;
}

CachedQueue queue_at(std::uint64_t version, const std::string& uid = "q-1") {
  CachedQueue queue;
  queue.namespace_ = "media";
  queue.name = "encode";
  queue.uid = uid;
  queue.version = version;
  return queue;
}

// A job waits in the queue, and our write with this version has admitted it.
void admit(QueueBook& book, std::uint64_t version) {
  const CachedQueue queue = queue_at(10);
  book.current(queue);
  book.put(queued_job(), OldPods::kNone, kNow);
  reconciler::QueueStatus status;
  status.admitting = {{"u-1", 0}};
  book.written(queue, status, version, SteadyTime());
}

TEST(QueueBook, AJobWaitsIfItAskedOrSaysSoInItsStatus) {
  QueueBook book;
  book.put(job_in(Phase::kPending), OldPods::kNone, kNow);
  EXPECT_EQ(book.line.waiting(), 0) << "nobody knows yet whether it could start";
  book.ask(job_in(Phase::kPending), true, OldPods::kNone, SteadyTime(seconds(5)), kNow);
  EXPECT_EQ(book.line.waiting(), 1);
  EXPECT_EQ(book.waited("u-1", SteadyTime(seconds(7))), seconds(2));
  book.ask(job_in(Phase::kPending), false, OldPods::kNone, SteadyTime(seconds(8)), kNow);
  EXPECT_EQ(book.line.waiting(), 0);
  book.put(queued_job(), OldPods::kNone, kNow);
  EXPECT_EQ(book.line.waiting(), 1) << "a replica that has just started knows it, too";
  EXPECT_EQ(book.line.oldest_since(), kNow - seconds(60));
}

TEST(QueueBook, AJobThatMayNotStartDoesNotWait) {
  for (const auto change : {+[](codecs::CachedJob& job) { job.job.spec.suspend = true; },
                            +[](codecs::CachedJob& job) { job.job.spec.cancel = true; },
                            +[](codecs::CachedJob& job) { job.job.spec.parallelism = 0; },
                            +[](codecs::CachedJob& job) { job.job.deleting = true; }}) {
    QueueBook book;
    codecs::CachedJob job = queued_job();
    change(job);
    book.put(job, OldPods::kNone, kNow);
    EXPECT_EQ(book.line.waiting(), 0);
  }
}

TEST(QueueBook, PermitsAreCountedFromRecordedPhases) {
  const auto used = [](Phase phase, bool strict, bool has_pod) {
    QueueBook book;
    codecs::CachedJob job = job_in(phase, 1);
    if (strict) job.job.spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
    book.put(job, has_pod ? OldPods::kThere : OldPods::kNone, kNow);
    return book.line.used();
  };
  EXPECT_EQ(used(Phase::kRunning, false, false), 1);
  EXPECT_EQ(used(Phase::kCancelling, false, false), 1);
  for (const Phase phase : {Phase::kPending, Phase::kBackoff, Phase::kSuspended}) {
    EXPECT_EQ(used(phase, false, true), 0) << to_string(phase);
    EXPECT_EQ(used(phase, true, true), 1) << "podReplacementPolicy Failed: " << to_string(phase);
    EXPECT_EQ(used(phase, true, false), 0) << to_string(phase);
  }
  for (const Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kCancelled}) {
    EXPECT_EQ(used(phase, true, true), 0) << "a job that has ended never holds one";
  }
}

// Its phase stays Running as long as somebody's finalizer holds it, and nobody writes its status.
TEST(QueueBook, ADeletedJobHoldsNoPermitWhoeverHoldsTheJob) {
  for (const Phase phase : {Phase::kRunning, Phase::kCancelling, Phase::kBackoff}) {
    for (const OldPods pods : {OldPods::kNone, OldPods::kThere, OldPods::kUnknown}) {
      QueueBook book;
      codecs::CachedJob job = job_in(phase, 1);
      job.job.spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
      book.put(job, OldPods::kThere, kNow);
      ASSERT_EQ(book.line.used(), 1);
      job.job.deleting = true;
      book.put(job, pods, kNow);
      EXPECT_EQ(book.line.used(), 0) << to_string(phase);
      EXPECT_FALSE(book.counts_pods());
      QueueBook of_another_replica;
      of_another_replica.put(job, pods, kNow);
      EXPECT_EQ(of_another_replica.line.used(), 0) << to_string(phase);
    }
  }
}

TEST(QueueBook, AJobThatIsDeletedBeforeItStartsGivesItsAdmissionBack) {
  QueueBook book;
  codecs::CachedJob job = queued_job();
  book.put(job, OldPods::kNone, kNow);
  book.line.admit("u-1");
  ASSERT_EQ(book.line.used(), 1);
  job.job.deleting = true;
  book.put(job, OldPods::kNone, kNow);
  EXPECT_EQ(book.line.used(), 0);
  EXPECT_TRUE(book.line.open_admissions().empty());
}

TEST(QueueBook, APodThatAnOldCacheMayNotShowKeepsThePermit) {
  QueueBook book;
  codecs::CachedJob job = queued_job(Phase::kBackoff, 1);
  job.job.spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
  book.put(job, OldPods::kUnknown, kNow);
  EXPECT_EQ(book.line.used(), 1);
  book.put(job, OldPods::kThere, kNow);
  EXPECT_EQ(book.line.used(), 0) << "the job asks, so its pod is on a node that is gone";
  EXPECT_EQ(book.line.waiting(), 1);
}

TEST(QueueBook, OurOwnWriteCountsUntilTheCacheIsNewer) {
  QueueBook book;
  CachedQueue queue = queue_at(10);
  queue.status.holder = "old";
  EXPECT_EQ(book.current(queue).version, 10u);
  reconciler::QueueStatus status;
  status.holder = "me";
  status.admitting = {{"u-1", 0}};
  book.written(queue, status, 12, SteadyTime(seconds(1)));
  EXPECT_EQ(book.current(queue).version, 12u);
  EXPECT_EQ(book.current(queue).status->holder, "me");
  EXPECT_TRUE(book.is_admitted("u-1", 0));
  EXPECT_FALSE(book.is_admitted("u-1", 1));
  CachedQueue newer = queue_at(13);
  newer.status.holder = "other";
  EXPECT_EQ(book.current(newer).status->holder, "other");
  EXPECT_FALSE(book.is_admitted("u-1", 0));
}

// S19: a job starts only with an admission that is on record.
TEST(QueueBook, AnAdmissionWhoseWriteFailedIsNone) {
  QueueBook book;
  const CachedQueue queue = queue_at(10);
  book.current(queue);
  book.put(queued_job(), OldPods::kNone, kNow);
  book.line.admit("u-1");
  EXPECT_FALSE(book.is_admitted("u-1", 0)) << "not before the answer";
  book.not_written(queue);
  EXPECT_EQ(book.line.used(), 0);
  EXPECT_EQ(book.line.waiting(), 1);
}

// The owner knows what the deleted queue had promised.
TEST(QueueBook, AQueueThatIsMadeAgainKeepsTheAdmissions) {
  QueueBook book;
  admit(book, 11);
  book.tenure.claimed("me", "q-1", 11);
  book.current(queue_at(20, "q-2"));
  EXPECT_EQ(book.line.used(), 1);
  EXPECT_TRUE(book.is_admitted("u-1", 0));
  EXPECT_FALSE(book.tenure.holds("me", "q-2"));
}

// Another replica has claimed it and counted without them.
TEST(QueueBook, AQueueThatWasMadeAgainAndClaimedOwesNothing) {
  QueueBook book;
  admit(book, 11);
  CachedQueue second = queue_at(20, "q-2");
  second.status.holder = "other";
  book.current(second);
  EXPECT_TRUE(book.carried().empty());
  EXPECT_EQ(book.line.used(), 0);
  EXPECT_FALSE(book.is_admitted("u-1", 0));
}

// The API server was restored: what it has forgotten was never promised.
TEST(QueueBook, AfterATimeTravelOnlyTheNewStatusCounts) {
  QueueBook book;
  admit(book, 90);
  book.time_travelled();
  EXPECT_FALSE(book.is_admitted("u-1", 0));
  EXPECT_EQ(book.line.used(), 0);
  EXPECT_FALSE(book.written(queue_at(10), {}, 91, SteadyTime())) << "an answer from before";
  const CachedQueue restored = queue_at(5);
  EXPECT_EQ(book.current(restored).version, 5u);
  EXPECT_TRUE(book.carried().empty());
}

TEST(QueueBook, NotifiedOfALagOnlyWhileAJobCouldStart) {
  QueueBook book;
  const CachedQueue queue = queue_at(10);
  book.current(queue);
  book.put(queued_job(), OldPods::kNone, kNow);
  book.watch_lag(&queue, kNow, SteadyTime(seconds(1)));
  book.watch_lag(&queue, kNow, SteadyTime(seconds(4)));
  EXPECT_EQ(book.lag(SteadyTime(seconds(6))), seconds(5));
  book.line.admit("u-1");
  book.watch_lag(&queue, kNow, SteadyTime(seconds(7)));
  EXPECT_EQ(book.lag(SteadyTime(seconds(9))), seconds(0));
  book.watch_lag(nullptr, kNow, SteadyTime(seconds(7)));
  EXPECT_EQ(book.lag(SteadyTime(seconds(9))), seconds(0)) << "no queue, no lag";
}

codecs::CachedJob any_job(reconciler::testing::Rng& rng, const std::string& uid) {
  const Phase phases[] = {Phase::kPending, Phase::kRunning, Phase::kBackoff, Phase::kFailed};
  const Phase phase = phases[rng.below(4)];
  codecs::CachedJob job = job_in(phase, rng.below(3), uid);
  if (phase != Phase::kRunning && rng.percent(50))
    job.job.status.waiting = queued_job().job.status.waiting;
  if (rng.percent(50)) job.job.spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
  job.job.spec.suspend = rng.percent(10);
  job.job.deleting = rng.percent(10);
  return job;
}

TEST(QueueBook, WhatIsKeptTwiceAgreesAfterAnySteps) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    reconciler::testing::Rng rng(seed);
    QueueBook book;
    CachedQueue queue = queue_at(10);
    const OldPods pods[] = {OldPods::kNone, OldPods::kThere, OldPods::kUnknown};
    for (int step = 0; step < 200; ++step) {
      const std::string uid = "u-" + std::to_string(rng.below(8));
      const codecs::CachedJob job = any_job(rng, uid);
      reconciler::QueueStatus status;
      status.admitting = {{uid, rng.below(3)}, {"u-1", rng.below(3)}};
      switch (rng.below(9)) {
        case 0:
          book.erase(uid);
          break;
        case 1:
          book.written(queue, status, queue.version + 1, SteadyTime(seconds(step)));
          break;
        case 2:
          book.not_written(queue);
          break;
        case 3:
          queue = queue_at(queue.version + 1, "q-" + std::to_string(rng.below(2)));
          queue.status = status;
          book.current(queue);
          break;
        case 4:
          if (rng.percent(10)) book.time_travelled();
          break;
        case 5:
          if (const auto* const next = book.line.next()) book.line.admit(std::string(next->uid));
          break;
        case 6:
          book.ask(job, rng.percent(60), pods[rng.below(3)], SteadyTime(seconds(step)), kNow);
          break;
        default:
          book.put(job, pods[rng.below(3)], kNow);
      }
      ASSERT_NO_THROW(book.check()) << "seed " << seed << ", step " << step;
      ASSERT_NO_THROW(book.line.check()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace holdfast::queues
