// What the rules about a worker get to know of it.
#include "operator/pools/worker_facts.h"

#include <gtest/gtest.h>

#include <memory>

namespace holdfast::controller {
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
    Worker worker;
    worker.lease = lease;
    worker.work = work;
    worker.pod = pod;
    worker.agent_duration = agent_duration;
    return worker_facts(worker, there_is_a_pool ? &pool : nullptr, pod_is);
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

}  // namespace
}  // namespace holdfast::controller
