// What the rules about a worker get to know of it.
#include "operator/pools/worker_facts.h"

#include <gtest/gtest.h>

#include <memory>

namespace holdfast::pools {
namespace {

using reconciler::PodIs;
using reconciler::WorkerFacts;
using reconciler::WorkerIs;

CachedPool a_pool() {
  CachedPool pool;
  pool.uid = "pool-1";
  return pool;
}

struct WorkerFactsTest : ::testing::Test {
  WorkerFactsTest() {
    lease->duration = std::chrono::seconds(30);
    lease->holder = "pod/pod-uid";
    lease->report.life = "life";
    lease->renewed = Time{};
    pod->owner_uid = pool.uid;
  }
  WorkerFacts facts(PodIs pod_is = PodIs::kThere, bool there_is_a_pool = true) {
    return worker_facts(worker(), there_is_a_pool ? &pool : nullptr, pod_is);
  }
  Worker worker() {
    Worker worker;
    worker.lease.show(lease, /*is_own=*/false);
    worker.work.show(work, /*is_own=*/false);
    worker.pod.show(pod, /*is_own=*/false);
    worker.pod_history.agent_duration = agent_duration;
    return worker;
  }

  CachedPool pool = a_pool();
  std::shared_ptr<CachedWorkerLease> lease = std::make_shared<CachedWorkerLease>();
  std::shared_ptr<CachedWorkerLease> work;
  std::shared_ptr<CachedWorkerPod> pod = std::make_shared<CachedWorkerPod>();
  std::chrono::seconds agent_duration{0};
};

TEST_F(WorkerFactsTest, AWorkerWhoseLeaseItsAgentRenewsIsOursAndLives) {
  const WorkerFacts known = facts();
  EXPECT_EQ(known.is, WorkerIs::kLive);
  EXPECT_TRUE(known.has_pool && known.has_lease && known.is_ours && known.renewed &&
              known.is_marked);
  EXPECT_FALSE(known.has_work);
  EXPECT_EQ(known.duration, std::chrono::seconds(30));
}

TEST_F(WorkerFactsTest, WithoutALeaseOnlyItsPodAndItsPoolCount) {
  lease = nullptr;
  const WorkerFacts known = facts(PodIs::kGone);
  EXPECT_EQ(known.pod, PodIs::kGone);
  EXPECT_FALSE(known.has_lease || known.is_needed || known.renewed || known.is_marked);
  EXPECT_TRUE(known.has_pool);
}

TEST_F(WorkerFactsTest, UntilOneHasLookedAWorkerWithALeaseIsNeeded) {
  EXPECT_TRUE(facts().is_needed);
}

TEST_F(WorkerFactsTest, APoolThatIsDeletedOrMadeAnewIsNoPoolOfIts) {
  EXPECT_FALSE(facts(PodIs::kThere, /*there_is_a_pool=*/false).has_pool);
  pool.uid = "pool-2";
  EXPECT_FALSE(facts().has_pool) << "another pool of the same name";
  pod = nullptr;
  EXPECT_TRUE(facts().has_pool) << "nobody can say whose the worker was";
  pool.deleting = true;
  EXPECT_FALSE(facts().has_pool);
}

TEST_F(WorkerFactsTest, ALeaseThatSomebodyHasChangedIsNotOurs) {
  lease->refused = "its label is another one";
  lease->holder = kRevokedHolder;
  EXPECT_FALSE(facts().is_ours);
  EXPECT_EQ(facts().is, WorkerIs::kLive) << "what it says counts for nothing";
}

TEST_F(WorkerFactsTest, WhatIsNotUnderstoodMattersUntilTheWorkerIsRevoked) {
  lease->error = "no JSON";
  EXPECT_FALSE(facts().is_ours);
  lease->error.clear();
  work = std::make_shared<CachedWorkerLease>();
  work->error = "no JSON";
  EXPECT_FALSE(facts().is_ours);
  lease->holder = kRevokedHolder;
  EXPECT_TRUE(facts().is_ours);
  EXPECT_TRUE(facts().has_work);
}

TEST_F(WorkerFactsTest, ItsProcessesMayOutlastItsRenewalAsLongAsItsAgentSays) {
  work = std::make_shared<CachedWorkerLease>();
  work->duration = std::chrono::seconds(60);
  EXPECT_EQ(facts().duration, std::chrono::seconds(60)) << "the longer of its Leases";
  agent_duration = std::chrono::seconds(10);
  EXPECT_EQ(facts().duration, std::chrono::seconds(10));
}

TEST_F(WorkerFactsTest, ItsPodSaysWhetherTheKernelKilledItForItsMemory) {
  EXPECT_FALSE(facts().out_of_memory);
  pod->worker.out_of_memory = true;
  EXPECT_TRUE(facts().out_of_memory);
}

TEST_F(WorkerFactsTest, AWorkerTakesAttemptsWhileItLivesAndNothingWantsItToGo) {
  work = std::make_shared<CachedWorkerLease>();
  EXPECT_TRUE(may_take(worker(), &pool));
  EXPECT_FALSE(may_take(worker(), nullptr));
  Worker drains = worker();
  drains.duty.drains = true;
  EXPECT_FALSE(may_take(drains, &pool));
  Worker goes = worker();
  goes.removal.accepted = true;
  EXPECT_FALSE(may_take(goes, &pool));
  pod->worker.deleting = true;
  EXPECT_FALSE(may_take(worker(), &pool)) << "somebody else deletes its pod";
  pod->worker.deleting = false;
  pool.uid = "pool-2";
  EXPECT_FALSE(may_take(worker(), &pool)) << "it is of another pool of that name";
  pool.uid = pod->owner_uid;
  work->work.draining = true;
  EXPECT_FALSE(may_take(worker(), &pool));
  work = nullptr;
  EXPECT_FALSE(may_take(worker(), &pool)) << "it cannot be told what to run";
}

TEST_F(WorkerFactsTest, AWorkerWhoseLeasesCannotBeReadMayHaveAnAttempt) {
  const auto attempts = [&](const WorkerSlots& slots) {
    return planned_worker(worker(), slots, SteadyTime{}, Time{}).attempts;
  };
  WorkerSlots slots;
  EXPECT_EQ(attempts(slots), 0) << "without a work Lease it has begun nothing";
  work = std::make_shared<CachedWorkerLease>();
  EXPECT_EQ(attempts(slots), 0);
  work->error = "no JSON";
  EXPECT_EQ(attempts(slots), 1);
  slots.entries = {{"job", 0, 1}, {"job", 1, 2}};
  EXPECT_EQ(attempts(slots), 2);
}

TEST_F(WorkerFactsTest, ThePlanCountsOurOwnDeletionOfAPod) {
  Worker goes = worker();
  goes.removal.accepted = true;
  EXPECT_TRUE(planned_worker(goes, {}, SteadyTime{}, Time{}).pod.deleting);
  goes.removal = {.accepted = false, .failures = 1};
  const reconciler::PoolWorker planned = planned_worker(goes, {}, SteadyTime{}, Time{});
  EXPECT_TRUE(planned.stays);
  EXPECT_FALSE(planned.pod.deleting);
}

struct RecordSaysTest : ::testing::Test {
  RecordSaysTest() {
    job.status.phase = reconciler::Phase::kRunning;
    job.status.attempt = 3;
    reconciler::Run run;
    run.index = 1;
    run.attempt = 3;
    run.worker_uid = "lease";
    job.status.runs.push_back(run);
  }
  reconciler::RecordSays says(std::int64_t index, std::int64_t attempt) const {
    return record_says(job, {"job", index, attempt}, "lease");
  }
  reconciler::Job job;
};

TEST_F(RecordSaysTest, OnlyTheOpenAttemptThatNamesTheWorkerRunsThere) {
  using reconciler::RecordSays;
  EXPECT_EQ(says(1, 3), RecordSays::kRun);
  EXPECT_EQ(says(1, 2), RecordSays::kOver) << "a later attempt is on record";
  EXPECT_EQ(says(0, 3), RecordSays::kOver) << "its run is over";
  EXPECT_EQ(record_says(job, {"job", 1, 3}, "another"), RecordSays::kOver);
}

TEST_F(RecordSaysTest, ARecordThatIsOlderThanTheAttemptSaysNothing) {
  EXPECT_EQ(says(1, 4), reconciler::RecordSays::kUnknown);
}

TEST_F(RecordSaysTest, NothingRunsOfAJobThatIsOverOrGoes) {
  using reconciler::RecordSays;
  job.deleting = true;
  EXPECT_EQ(says(1, 4), RecordSays::kOver);
  job.deleting = false;
  job.status.runs[0].next_attempt_time = Time{};
  EXPECT_EQ(says(1, 3), RecordSays::kOver) << "its end is on record";
  job.status.runs[0].next_attempt_time.reset();
  job.status.phase = reconciler::Phase::kFailed;
  EXPECT_EQ(says(1, 3), RecordSays::kOver);
}

}  // namespace
}  // namespace holdfast::pools
