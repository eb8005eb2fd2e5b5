// How many workers a pool has, rule by rule.
#include "reconciler/pool/size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/lost_nodes.h"
#include "reconciler/pool/start_failures.h"

namespace holdfast::reconciler {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PoolSize : public ::testing::Test {
 protected:
  PoolSize() {
    state.name = "thumbnails";
    state.generation = 1;
    state.status.observed_generation = 1;
    state.hash = "new";
    state.now = kEarliestTime + std::chrono::hours(1000);
  }

  // A live worker without an attempt, an hour old.
  PoolWorker& add(const std::string& uid, std::int64_t attempts = 0) {
    PoolWorker worker;
    worker.pod.name = "pod-" + uid;
    worker.pod.uid = uid;
    worker.pod.created = state.now - minutes(60);
    worker.bound = worker.pod.created;
    worker.pod.hash = "new";
    worker.pod.slots = state.spec.slots;
    worker.state = WorkerState::kLive;
    worker.served = true;
    worker.attempts = attempts;
    state.workers.push_back(worker);
    return state.workers.back();
  }
  PoolWorker& add_starting(const std::string& uid) {
    PoolWorker& worker = add(uid);
    worker.state = WorkerState::kStarting;
    worker.served = false;
    worker.pod.created = state.now - seconds(5);
    worker.bound = worker.pod.created;
    return worker;
  }
  PoolPlan plan() const { return plan_pool(state); }
  // A pod that was created then, and got its node at once.
  static void begin(PoolWorker& worker, Time when) { worker.pod.created = *(worker.bound = when); }
  // The plan's status is written; then time goes on.
  void record(Duration after) {
    state.status = plan().status;
    state.now += after;
  }
  const Condition& condition(const PoolPlan& plan, const std::string& type) const {
    for (const Condition& one : plan.status.conditions) {
      if (one.type == type) return one;
    }
    ADD_FAILURE() << "no condition " << type;
    static const Condition kNone;
    return kNone;
  }
  bool acts(const PoolPlan& plan) const {
    return plan.create > 0 || !plan.drain.empty() || !plan.remove.empty();
  }

  PoolState state;
};

// Without that the pool would have one more pod after each back-off.
TEST_F(PoolSize, WhatCannotStartAndCannotBeDeletedCountsTowardsTheMaximum) {
  state.spec.min_workers = state.spec.max_workers = 2;
  for (const char* const uid : {"a", "b"}) {
    add_starting(uid).pod.cannot_start = true;
  }
  record(kFirstStartDelay + seconds(1));
  EXPECT_EQ(plan().create, 2) << "each is replaced";
  EXPECT_THAT(plan().remove, UnorderedElementsAre("a", "b"));
  state.workers[0].stays = true;
  EXPECT_EQ(plan().create, 1);
  state.workers[1].stays = true;
  EXPECT_EQ(plan().create, 0);
  EXPECT_THAT(plan().remove, UnorderedElementsAre("a", "b"));
  state.spec.max_workers = 3;
  EXPECT_EQ(plan().create, 1);
  state.spec.max_workers = 2;
  state.hash = "newer";
  EXPECT_EQ(plan().create, 2) << "another template may start";
}

// It may have begun to serve, and the watch of its Lease is late.
TEST_F(PoolSize, AnOldWorkerThatMayStillStartGoesBeforeItsSuccessorIsMade) {
  state.spec.min_workers = state.spec.max_workers = 2;
  for (const char* const uid : {"a", "b"}) add_starting(uid).pod.hash = "old";
  EXPECT_THAT(plan().replace, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(plan().create, 2);
  state.workers[0].stays = true;
  EXPECT_EQ(plan().create, 1) << "that one cannot be deleted now";
}

TEST_F(PoolSize, AWorkerWithAnAttemptIsNeverRemovedAsOneThatStarts) {
  state.spec.max_workers = 2;
  add_starting("a").attempts = 1;
  state.workers[0].pod.hash = "old";
  EXPECT_THAT(plan().remove, IsEmpty()) << "it serves, and the watch of its Lease is late";
  for (const char* const uid : {"b", "c"}) add_starting(uid).attempts = 1;
  EXPECT_THAT(plan().remove, IsEmpty());
  add_starting("d");
  EXPECT_THAT(plan().remove, ElementsAre("d"));
}

TEST_F(PoolSize, AnOldWorkerWithAnAttemptThatIsNeverLiveIsReplacedAtItsDeadline) {
  PoolWorker& worker = add_starting("a");
  worker.attempts = 1;
  worker.pod.hash = "old";
  worker.bound = state.now - state.spec.start_deadline + seconds(1);
  EXPECT_THAT(plan().remove, IsEmpty());
  worker.bound = state.now - state.spec.start_deadline;
  EXPECT_THAT(plan().remove, ElementsAre("a"));
}

TEST_F(PoolSize, AWorkerWithAnAttemptAndWithoutANodeIsNotForgone) {
  state.spec.min_workers = 0;
  PoolWorker& worker = add_starting("a");
  worker.bound.reset();
  worker.pod.created = state.now - std::chrono::hours(1);
  EXPECT_THAT(plan().remove, ElementsAre("a"));
  worker.attempts = 1;
  EXPECT_THAT(plan().remove, IsEmpty());
}

// More of them than one plan deletes have no successors yet.
TEST_F(PoolSize, WhatMustGoFirstGoesBeforeWhatIsOverAndNoSuccessorComesBeforeThat) {
  state.spec.min_workers = state.spec.max_workers = 20;
  for (int i = 0; i < 16; ++i) {
    add("over-" + std::to_string(i)).state = WorkerState::kCutOff;
  }
  for (int i = 0; i < 4; ++i) add("live-" + std::to_string(i), 1);
  for (int i = 0; i < 18; ++i) add_starting("old-" + std::to_string(i)).pod.hash = "old";
  EXPECT_EQ(plan().replace.size(), 16u);
  EXPECT_EQ(plan().create, 14);
}

TEST_F(PoolSize, AWorkerThatIsTooLateHasFailedThoughAnAgentHasWrittenItsLease) {
  begin(add("lasts"), state.now - kShortLife);
  PoolWorker& late = add_starting("late");
  late.served = true;
  begin(late, state.now - std::chrono::hours(1));
  EXPECT_EQ(plan().status.starts.failed, 1);
}

TEST_F(PoolSize, InALargePoolWhatCannotBeDeletedIsTriedLast) {
  state.spec.min_workers = state.spec.max_workers = 20;
  for (int i = 0; i < 20; ++i) add_starting("w" + std::to_string(i)).pod.cannot_start = true;
  record(kFirstStartDelay + seconds(1));
  EXPECT_EQ(plan().remove.size(), 16u);
  EXPECT_EQ(plan().replace.size(), 16u);
  EXPECT_EQ(plan().create, 16);
  for (int i = 0; i < 16; ++i) state.workers[static_cast<std::size_t>(i)].stays = true;
  EXPECT_EQ(plan().create, 4) << "of those that were not tried";
  EXPECT_EQ(plan().remove.front(), "w16") << "they come first";
  for (PoolWorker& worker : state.workers) worker.stays = true;
  EXPECT_EQ(plan().create, 0);
}

TEST_F(PoolSize, KeepsTheMinimum) {
  state.spec.min_workers = 3;
  add("a");
  add_starting("b");
  EXPECT_EQ(plan().create, 1);
  state.spec.min_workers = 0;
  state.workers.clear();
  EXPECT_FALSE(acts(plan()));
  EXPECT_FALSE(plan().wake_after);
}

// Its workers were made by a newer version, whose hash of them may be another one.
TEST_F(PoolSize, OfASpecThatIsNotKnownOnlyWhatIsOverChanges) {
  add("a", 1);
  add("old").pod.hash = "other";
  add("idle").idle_for = std::chrono::hours(9);
  add_starting("starting").pod.hash = "other";
  state.waiting = 9;
  EXPECT_TRUE(acts(plan()));
  state.spec.unknown = "spec.gpus";
  EXPECT_FALSE(acts(plan()));
  EXPECT_TRUE(condition(plan(), "Stalled").status);
  EXPECT_EQ(condition(plan(), "Stalled").reason, "NotKnownToThisVersion");
  EXPECT_THAT(plan().status.message, HasSubstr("spec.gpus"));
  state.workers[0].state = WorkerState::kCutOff;
  EXPECT_THAT(plan().remove, ElementsAre("a"));
}

TEST_F(PoolSize, WhatWasSaidOfAFailureOutlastsAFieldThatIsNotKnown) {
  state.workers.clear();
  state.status.starts = {2, state.now + seconds(5)};
  state.status.message = "no such image";
  state.spec.unknown = "spec.gpus";
  state.status = plan().status;
  EXPECT_EQ(condition(plan(), "Available").message, "no such image");
  EXPECT_EQ(plan().status, state.status) << "only time brings something new";
  state.spec.unknown.clear();
  EXPECT_EQ(plan().status.message, "no such image");
}

TEST_F(PoolSize, GrowsByWhatWaits) {
  state.spec.slots = 4;
  add("a", 4);
  add("b", 3);
  state.waiting = 1;
  EXPECT_EQ(plan().create, 0) << "b has a free slot";
  state.waiting = 2;
  EXPECT_EQ(plan().create, 1);
  state.waiting = 6;
  EXPECT_EQ(plan().create, 2);
  add_starting("c");
  EXPECT_EQ(plan().create, 1) << "a starting worker is capacity";
  state.waiting = 1000;
  EXPECT_EQ(plan().create, 7) << "maxWorkers";
}

TEST_F(PoolSize, ARunThatNeedsAWorkerOfItsOwnMakesThePoolGrowAlthoughOthersHaveFreeSlots) {
  state.spec.slots = 4;
  add("a", 1);
  add("b", 1);
  state.waiting = state.waiting_alone = 1;
  EXPECT_EQ(plan().create, 1) << "no worker is empty";
  state.workers[1].kept = true;
  EXPECT_EQ(plan().create, 1) << "its commands may take long";
  state.workers[1].attempts = 0;
  EXPECT_EQ(plan().create, 0) << "now it is empty";
  state.workers[1].kept = false;
  EXPECT_EQ(plan().create, 0);
  state.workers[1].attempts = 1;
  add_starting("c");
  EXPECT_EQ(plan().create, 0) << "a starting worker is empty";
  state.waiting = state.waiting_alone = 3;
  EXPECT_EQ(plan().create, 2) << "each needs another one";
  state.waiting = state.waiting_alone = 1000;
  EXPECT_EQ(plan().create, 7) << "maxWorkers";
}

TEST_F(PoolSize, AnEmptyWorkerServesARunOfItsOwnOrOthersButNotBoth) {
  state.spec.slots = 4;
  add("a", 4);
  add("b");
  state.waiting = 4;
  EXPECT_EQ(plan().create, 0);
  state.waiting_alone = 1;
  EXPECT_EQ(plan().create, 1) << "b is for one of them";
  state.workers[1].kept = true;
  EXPECT_EQ(plan().create, 1);
  state.waiting = 6;
  EXPECT_EQ(plan().create, 2) << "five other runs need two workers";
}

TEST_F(PoolSize, AnIdleWorkerStaysForARunThatNeedsOneOfItsOwn) {
  state.spec.slots = 4;
  add("a", 1);
  add("b").idle_for = minutes(10);
  state.waiting = 1;
  EXPECT_THAT(plan().drain, ElementsAre("b")) << "a has free slots";
  state.waiting_alone = 1;
  EXPECT_FALSE(acts(plan()));
}

TEST_F(PoolSize, CreatesAFewPodsAtOnce) {
  state.spec.max_workers = 500;
  state.waiting = 500;
  EXPECT_EQ(plan().create, kPlanLimit);
  EXPECT_EQ(plan().wake_after, kNextPlan);
}

TEST_F(PoolSize, WorkersOfOtherSlotsCountAsWhatTheyHave) {
  state.spec.slots = 16;
  for (const char* const uid : {"a", "b", "c"}) add(uid, 1).pod.slots = 1;
  state.waiting = 2;
  EXPECT_EQ(plan().create, 1) << "three full workers of one slot have no room for two more";
}

TEST_F(PoolSize, AnIdleWorkerGoesAfterIdleSeconds) {
  add("a", 1).idle_for = seconds(0);
  add("b").idle_for = seconds(200);
  const PoolPlan early = plan();
  EXPECT_THAT(early.drain, IsEmpty());
  EXPECT_EQ(early.wake_after, Duration(seconds(100)));
  state.workers[1].idle_for = seconds(300);
  EXPECT_THAT(plan().drain, ElementsAre("b"));
  EXPECT_THAT(plan().remove, IsEmpty()) << "it must be marked first";
}

TEST_F(PoolSize, TheYoungestIdleWorkerGoesFirstAndTheMinimumStays) {
  for (const char* const uid : {"a", "b", "c"}) add(uid).idle_for = minutes(10);
  state.workers[1].pod.created += minutes(5);
  EXPECT_THAT(plan().drain, ElementsAre("b", "a"));
  state.spec.min_workers = 2;
  EXPECT_THAT(plan().drain, ElementsAre("b"));
}

TEST_F(PoolSize, AWorkerThatIsBeingMarkedCountsAsDrained) {
  for (const char* const uid : {"a", "b"}) add(uid).idle_for = minutes(10);
  state.workers[1].pod.created += minutes(5);
  state.workers[0].marking = true;
  EXPECT_THAT(plan().drain, ElementsAre("a")) << "not the younger one, and not both";
  state.spec.min_workers = 2;
  EXPECT_THAT(plan().drain, ElementsAre("a")) << "the write cannot be taken back";
}

TEST_F(PoolSize, AStartingWorkerIsNoReasonToLoseALiveOne) {
  add("a").idle_for = minutes(10);
  add_starting("b");
  EXPECT_THAT(plan().drain, IsEmpty());
}

TEST_F(PoolSize, ABusyWorkerIsNeverDrainedForScaleIn) {
  state.spec.min_workers = 0;
  state.spec.slots = 4;
  for (const char* const uid : {"a", "b", "c"}) add(uid, 1).idle_for = minutes(10);
  EXPECT_FALSE(acts(plan()));
}

TEST_F(PoolSize, WhatWaitsKeepsIdleWorkers) {
  add("a").idle_for = minutes(10);
  add("b").idle_for = minutes(10);
  state.waiting = 2;
  EXPECT_FALSE(acts(plan()));
}

TEST_F(PoolSize, ALowerMaximumDrainsTheLeastLoaded) {
  state.spec.slots = 4;
  add("a", 3);
  add("b", 1);
  add("c", 2);
  add_starting("d");
  state.spec.max_workers = 1;
  const PoolPlan lower = plan();
  EXPECT_THAT(lower.remove, ElementsAre("d"));
  EXPECT_THAT(lower.drain, ElementsAre("b", "c"));
}

TEST_F(PoolSize, ADrainedWorkerIsDeletedOnceItHoldsNothing) {
  add("a");
  add("b", 1).state = WorkerState::kDraining;
  EXPECT_FALSE(acts(plan()));
  state.workers[1].attempts = 0;
  EXPECT_THAT(plan().remove, ElementsAre("b"));
  state.workers[1].pod.deleting = true;
  EXPECT_FALSE(acts(plan())) << "once is enough";
}

TEST_F(PoolSize, ACutOffWorkerIsDeletedAndReplaced) {
  add("a", 3).state = WorkerState::kCutOff;
  const PoolPlan cut_off = plan();
  EXPECT_THAT(cut_off.remove, ElementsAre("a"));
  EXPECT_EQ(cut_off.create, 1);
  EXPECT_EQ(cut_off.status.workers.total, 0);
}

TEST_F(PoolSize, AnEndedPodStaysUntilItsWorkerIsCutOff) {
  add("a", 1).pod.ended = true;
  EXPECT_THAT(plan().remove, IsEmpty()) << "its last answers count";
  EXPECT_EQ(plan().create, 1);
  state.workers[0].pod.failed = true;
  begin(state.workers[0], state.now - seconds(20));
  record(kFirstStartDelay);
  EXPECT_THAT(plan().remove, IsEmpty()) << "it failed soon after its start, too";
  state.workers[0].state = WorkerState::kCutOff;
  EXPECT_THAT(plan().remove, ElementsAre("a"));
}

TEST_F(PoolSize, AWorkerWhosePodIsBeingDeletedIsMarked) {
  add("a", 1).pod.deleting = true;
  const PoolPlan deleted = plan();
  EXPECT_THAT(deleted.drain, ElementsAre("a"));
  EXPECT_EQ(deleted.create, 1);
  EXPECT_EQ(deleted.status.workers.draining, 1);
}

TEST_F(PoolSize, APoolThatIsDeletedMakesNothing) {
  state.deleting = true;
  state.waiting = 5;
  EXPECT_FALSE(acts(plan()));
}

// ---- Rollout

TEST_F(PoolSize, ARolloutMakesANewWorkerFirst) {
  state.spec.min_workers = 4;
  for (const char* const uid : {"a", "b", "c", "d"}) add(uid, 1).pod.hash = "old";
  const PoolPlan first = plan();
  EXPECT_EQ(first.create, 1);
  EXPECT_THAT(first.drain, IsEmpty());
  EXPECT_EQ(condition(first, "Progressing").reason, "RollingOut");
  add_starting("e");
  EXPECT_FALSE(acts(plan())) << "it must be live";
  state.workers[4].state = WorkerState::kLive;
  EXPECT_THAT(plan().drain, ElementsAre("a"));
  state.workers[0].state = WorkerState::kDraining;
  EXPECT_FALSE(acts(plan())) << "a quarter of them at once";
}

TEST_F(PoolSize, ARolloutOfAFullPoolMissesAQuarter) {
  state.spec.min_workers = state.spec.max_workers = 8;
  for (char uid = 'a'; uid < 'i'; ++uid) add(std::string(1, uid), 1).pod.hash = "old";
  const PoolPlan first = plan();
  EXPECT_THAT(first.drain, ElementsAre("a", "b"));
  EXPECT_EQ(first.create, 0) << "their marks may not be written";
  state.workers[0].state = state.workers[1].state = WorkerState::kDraining;
  EXPECT_EQ(plan().create, 2);
  add_starting("x");
  add_starting("y");
  EXPECT_FALSE(acts(plan()));
}

TEST_F(PoolSize, ARolloutOfOneWorkerLeavesNoGapWhereItNeedNot) {
  add("a", 1).pod.hash = "old";
  EXPECT_EQ(plan().create, 1);
  EXPECT_THAT(plan().drain, IsEmpty());
  state.spec.max_workers = 1;
  EXPECT_THAT(plan().drain, ElementsAre("a"));
  EXPECT_EQ(plan().create, 0);
  state.workers[0].state = WorkerState::kDraining;
  EXPECT_EQ(plan().create, 1);
}

TEST_F(PoolSize, AnOldWorkerThatHasNotStartedIsReplacedAtOnce) {
  add_starting("a").pod.hash = "old";
  state.workers[0].pod.cannot_start = true;
  state.status.starts.failed = 5;
  state.status.starts.next = state.now + minutes(5);
  state.generation = 2;
  const PoolPlan fixed = plan();
  EXPECT_THAT(fixed.remove, ElementsAre("a"));
  EXPECT_EQ(fixed.create, 1) << "a new spec starts without a back-off";
  EXPECT_EQ(fixed.status.starts.failed, 0);
}

// ---- Workers that do not start

TEST_F(PoolSize, AFailureIsPutOnRecordBeforeThePodGoes) {
  PoolWorker& worker = add_starting("a");
  worker.pod.cannot_start = true;
  worker.pod.trouble = "ImagePullBackOff: no such image";
  const PoolPlan first = plan();
  EXPECT_FALSE(acts(first));
  EXPECT_EQ(first.status.starts.failed, 1);
  EXPECT_EQ(first.status.starts.next, state.now + kFirstStartDelay);
  EXPECT_EQ(first.wake_after, kFirstStartDelay);
  EXPECT_EQ(condition(first, "Available").reason, "WorkersCannotStart");
  EXPECT_THAT(first.status.message, HasSubstr("pod-a: ImagePullBackOff: no such image"));
  EXPECT_EQ(condition(first, "Stalled").status, false) << "it may be a short trouble";
  record(seconds(3));
  EXPECT_FALSE(acts(plan()));
  EXPECT_EQ(plan().status.starts.failed, 1) << "it counts once";
  record(seconds(7));
  EXPECT_THAT(plan().remove, ElementsAre("a"));
  EXPECT_EQ(plan().create, 1);
}

TEST_F(PoolSize, PodsThatFailTogetherAreOneFailure) {
  for (const char* const uid : {"a", "b", "c"}) add_starting(uid).pod.cannot_start = true;
  record(seconds(5));
  add_starting("d").pod.cannot_start = true;
  state.workers[3].pod.created = state.now - seconds(9);
  EXPECT_EQ(plan().status.starts.failed, 1);
}

TEST_F(PoolSize, TheBackOffDoublesUpToItsLimit) {
  for (const int seconds_of : {10, 20, 40, 80, 160, 300, 300}) {
    state.workers.clear();
    add_starting("a").pod.cannot_start = true;
    state.workers[0].pod.created = state.now;
    EXPECT_EQ(plan().status.starts.next, state.now + seconds(seconds_of));
    record(seconds(seconds_of));
  }
  EXPECT_EQ(condition(plan(), "Stalled").status, true);
  EXPECT_EQ(start_delay(kCountLimit), kLongestStartDelay);
}

TEST_F(PoolSize, AWorkerThatIsNotLiveInTimeHasFailed) {
  state.spec.start_deadline = seconds(90);
  add_starting("a").bound = state.now - seconds(89);
  state.workers[0].pod.created = state.now - minutes(20);
  EXPECT_EQ(plan().status.starts.failed, 0);
  EXPECT_EQ(plan().wake_after, Duration(seconds(1)));
  state.now += seconds(1);
  EXPECT_EQ(plan().status.starts.failed, 1);
  EXPECT_THAT(plan().status.message, HasSubstr("it is not live 1m30s after it got its node"));
}

TEST_F(PoolSize, AWorkerWithoutANodeWaitsWithoutLimitAndSaysWhy) {
  PoolWorker& worker = add_starting("a");
  worker.pod.created = state.now - std::chrono::hours(1);
  worker.bound.reset();
  worker.pod.trouble = "its scheduling waits for example.com/gate";
  const PoolPlan waits = plan();
  EXPECT_EQ(waits.status.starts.failed, 0);
  EXPECT_THAT(waits.remove, IsEmpty());
  EXPECT_FALSE(waits.wake_after) << "only a change can end this wait";
  EXPECT_FALSE(condition(waits, "Stalled").status);
  const std::string why =
      "1 worker has no node yet; pod pod-a: its scheduling waits for example.com/gate";
  for (const char* const type : {"Available", "Progressing"}) {
    EXPECT_EQ(condition(waits, type).reason, "WorkersAwaitNode") << type;
    EXPECT_EQ(condition(waits, type).message, why) << type;
  }
  EXPECT_EQ(waits.status.message, why);
  state.now += std::chrono::hours(1);
  EXPECT_THAT(plan().remove, IsEmpty());
  state.workers[0].bound = state.now;
  EXPECT_EQ(plan().wake_after, Duration(state.spec.start_deadline)) << "from when it has a node";
}

TEST_F(PoolSize, AWorkerWithoutANodeGoesOnceNobodyNeedsIt) {
  state.spec.min_workers = 0;
  for (const char* const uid : {"a", "b", "c"}) {
    PoolWorker& worker = add_starting(uid);
    worker.bound.reset();
    worker.pod.created = state.now - state.spec.idle + seconds(1);
  }
  state.waiting = 3;
  EXPECT_FALSE(acts(plan()));
  EXPECT_FALSE(plan().wake_after) << "they wait for nodes, and runs for them";
  state.waiting = 0;
  EXPECT_FALSE(acts(plan())) << "somebody may need them soon";
  EXPECT_EQ(plan().wake_after, Duration(seconds(1)));
  state.now += seconds(1);
  EXPECT_THAT(plan().remove, UnorderedElementsAre("a", "b", "c"));
  state.workers[1].pod.created -= seconds(5);
  state.waiting = 1;
  EXPECT_THAT(plan().remove, UnorderedElementsAre("a", "c")) << "the oldest stays";
  state.waiting = 0;
  state.spec.min_workers = 2;
  EXPECT_EQ(plan().remove.size(), 1U);
  state.spec.min_workers = 3;
  EXPECT_FALSE(acts(plan()));
  state.spec.min_workers = 0;
  for (PoolWorker& worker : state.workers) worker.bound = state.now;
  EXPECT_FALSE(acts(plan())) << "with a node they are about to serve";
}

// A new process has not heard yet which runs wait.
TEST_F(PoolSize, AWorkerWithoutANodeStaysUntilTheJobsHadTimeToAsk) {
  state.spec.min_workers = 0;
  PoolWorker& worker = add_starting("a");
  worker.bound.reset();
  worker.pod.created = state.now - state.spec.idle;
  state.asking = seconds(7);
  EXPECT_FALSE(acts(plan()));
  EXPECT_EQ(plan().wake_after, Duration(seconds(7)));
  state.asking = Duration::zero();
  EXPECT_THAT(plan().remove, UnorderedElementsAre("a"));
}

TEST_F(PoolSize, AWorkerWithoutANodeThatARolloutNeedsStays) {
  state.spec.min_workers = 0;
  add("old", 1).pod.hash = "old";
  PoolWorker& waits = add_starting("new");
  waits.bound.reset();
  waits.pod.created = state.now - minutes(30);
  EXPECT_FALSE(acts(plan())) << "the pool would make it again";
  add("other");
  EXPECT_THAT(plan().remove, ElementsAre("new"));
}

TEST_F(PoolSize, AWorkerThatWaitedForANodeAndFailsSoonAfterItHasFailedToStart) {
  PoolWorker& worker = add_starting("a");
  worker.pod.created = state.now - std::chrono::hours(1);
  worker.bound = state.now - seconds(10);
  worker.pod.ended = worker.pod.failed = worker.served = true;
  worker.state = WorkerState::kCutOff;
  EXPECT_EQ(plan().status.starts.failed, 1);
}

TEST_F(PoolSize, APodThatEndsBeforeItServedHasFailed) {
  PoolWorker& worker = add_starting("a");
  worker.pod.ended = true;
  EXPECT_EQ(plan().status.starts.failed, 1);
  EXPECT_EQ(plan().create, 0);
  worker.served = true;
  EXPECT_EQ(plan().status.starts.failed, 0);
  worker.pod.failed = true;
  EXPECT_EQ(plan().status.starts.failed, 1) << "it served for a moment only";
  begin(worker, state.now - kShortLife);
  EXPECT_EQ(plan().status.starts.failed, 0);
}

TEST_F(PoolSize, APodThatServedForAMomentHasNotFailedWhileAnotherWorkerLasts) {
  state.spec.min_workers = 3;
  begin(add("a"), state.now - kShortLife);
  PoolWorker& killed = add_starting("b");
  killed.pod.ended = killed.served = killed.pod.failed = true;
  killed.state = WorkerState::kCutOff;
  const PoolPlan replaced = plan();
  EXPECT_EQ(replaced.status.starts.failed, 0);
  EXPECT_EQ(replaced.create, 2);
  EXPECT_THAT(replaced.remove, IsEmpty()) << "a second one may follow";
  EXPECT_EQ(replaced.wake_after, kShortLife - seconds(5));
  begin(state.workers[0], state.workers[0].pod.created + seconds(1));
  EXPECT_EQ(plan().status.starts.failed, 1) << "the other one is as young";
  begin(state.workers[0], state.workers[0].pod.created - seconds(1));
  state.workers[1].served = false;
  EXPECT_EQ(plan().status.starts.failed, 1) << "it never served";
}

TEST_F(PoolSize, AWorkerThatItsCommandsRanOutOfMemoryHasNotFailedToStart) {
  PoolWorker& worker = add_starting("a");
  worker.pod.ended = worker.pod.failed = worker.served = worker.pod.out_of_memory = true;
  worker.state = WorkerState::kCutOff;
  EXPECT_EQ(plan().status.starts.failed, 1) << "nothing ran there: its agent has too little";
  worker.attempts = 1;
  EXPECT_EQ(plan().status.starts.failed, 0);
  EXPECT_EQ(plan().create, 1);
}

// A worker that lasts, and others that end one after the other.
TEST_F(PoolSize, TheSecondWorkerInARowThatServedForAMomentHasFailed) {
  state.spec.min_workers = 3;
  add("a");
  const auto add_ended = [&](const std::string& uid, seconds age) {
    PoolWorker& worker = add(uid);
    worker.pod.ended = worker.pod.failed = true;
    worker.state = WorkerState::kCutOff;
    begin(worker, state.now - age);
  };
  add_ended("b", seconds(20));
  add_ended("c", seconds(10));
  const PoolPlan waits = plan();
  EXPECT_EQ(waits.status.starts.failed, 1);
  EXPECT_EQ(waits.create, 0);
  EXPECT_EQ(waits.status.starts.next, state.now + kFirstStartDelay);
  PoolWorker& between = add("d");
  between.pod.created = state.now - seconds(15);
  EXPECT_EQ(plan().status.starts.failed, 0) << "one that serves came after the first one";
  state.workers.pop_back();
  record(kFirstStartDelay);
  EXPECT_THAT(plan().remove, ElementsAre("b", "c"));
  EXPECT_EQ(plan().create, 2);
  add("e").pod.created = state.now;
  EXPECT_EQ(plan().status.starts.failed, 0) << "it serves";
}

TEST_F(PoolSize, ThePodOfAWorkerThatServedForAMomentGoesAfterAMinute) {
  add("a");
  PoolWorker& ended = add("b");
  ended.pod.ended = ended.pod.failed = true;
  ended.state = WorkerState::kCutOff;
  begin(ended, state.now - kShortLife + seconds(1));
  EXPECT_THAT(plan().remove, IsEmpty());
  begin(ended, ended.pod.created - seconds(1));
  EXPECT_THAT(plan().remove, ElementsAre("b"));
}

TEST_F(PoolSize, ARefusedCreationIsAFailure) {
  state.refusal = PoolState::Refusal{"exceeded quota: pods=5", state.now};
  const PoolPlan refused = plan();
  EXPECT_EQ(refused.create, 0);
  EXPECT_THAT(refused.status.message, HasSubstr("exceeded quota"));
  record(kFirstStartDelay);
  EXPECT_EQ(plan().create, 1) << "it tries again";
  EXPECT_EQ(plan().status.starts.failed, 1);
  EXPECT_THAT(plan().status.message, HasSubstr("exceeded quota"));
}

TEST_F(PoolSize, ARefusalSaysNothingOfANewSpec) {
  state.refusal = PoolState::Refusal{"the pool needs the command", state.now};
  record(seconds(1));
  EXPECT_EQ(plan().create, 0);
  ++state.generation;
  EXPECT_EQ(plan().create, 1);
  EXPECT_EQ(plan().status.starts.failed, 0);
}

TEST_F(PoolSize, ALaterSuccessEndsTheRow) {
  state.status.starts.failed = 4;
  state.status.starts.next = state.now - seconds(20);
  add("a").pod.created = state.now - seconds(30);
  add_starting("b");
  EXPECT_EQ(plan().status.starts.failed, 4) << "it is older than the failure";
  state.workers[0].pod.created = state.now - seconds(20);
  EXPECT_EQ(plan().status.starts.failed, 0);
  EXPECT_FALSE(plan().status.starts.next);
}

TEST_F(PoolSize, AWrongClockDelaysNoStartForLong) {
  state.status.starts.failed = 1;
  state.status.starts.next = state.now + std::chrono::hours(9000);
  EXPECT_EQ(plan().status.starts.next, state.now + kLongestStartDelay);
}

// ---- Status

TEST_F(PoolSize, NewWorkersAreKeptAwayFromNodesOfThoseThatWereCutOff) {
  state.spec.min_workers = 3;
  const auto cut_off = [&](const std::string& node) -> WorkerPod& {
    PoolWorker& worker = add("at-" + node + std::to_string(state.workers.size()));
    worker.state = WorkerState::kCutOff;
    worker.pod.node = node;
    return worker.pod;
  };
  for (const char* node : {"a", "a", "b", ""}) cut_off(node);
  cut_off("its-kubelet-lives").ended = true;
  cut_off("long-since-marked").deleted = state.now - kLostNodeAvoided;
  cut_off("a").deleted = state.now - kLostNodeAvoided + seconds(1);
  add("live").pod.node = "c";
  EXPECT_EQ(plan().avoid, (std::vector<std::string>{"a", "b"}));
  for (const char* node : {"d", "e"}) cut_off(node);
  EXPECT_EQ(plan().avoid.size(), kLostNodesLimit);
  state.refusal = PoolState::Refusal{"no node affinity here", state.now - minutes(5)};
  EXPECT_TRUE(plan().avoid.empty()) << "a policy may forbid it, and a worker is worth more";
}

TEST_F(PoolSize, CountsWhatItSees) {
  state.spec.slots = 4;
  state.spec.min_workers = 3;
  add("a", 3);
  add("b");
  add("c", 2).state = WorkerState::kDraining;
  add_starting("d");
  add("e", 1).state = WorkerState::kCutOff;
  state.waiting = 7;
  const PoolStatus status = plan().status;
  EXPECT_EQ(status.workers.total, 4);
  EXPECT_EQ(status.workers.busy, 1);
  EXPECT_EQ(status.workers.idle, 1);
  EXPECT_EQ(status.workers.draining, 1);
  EXPECT_EQ(status.workers.starting, 1);
  EXPECT_EQ(status.slots, 8);
  EXPECT_EQ(status.busy_slots, 3);
  EXPECT_EQ(status.waiting, 7);
  EXPECT_EQ(status.selector, "holdfast.dev/worker-pool=thumbnails");
  EXPECT_EQ(condition(plan(), "Available").message, "2 of 3 workers live");
  EXPECT_EQ(condition(plan(), "Progressing").reason, "WorkersStarting");
}

TEST_F(PoolSize, AStatusAtRestIsNotWrittenAgain) {
  add("a");
  record(seconds(1));
  EXPECT_EQ(plan().status, state.status);
  EXPECT_EQ(condition(plan(), "Available").status, true);
  EXPECT_EQ(condition(plan(), "Progressing").status, false);
}

}  // namespace
}  // namespace holdfast::reconciler
