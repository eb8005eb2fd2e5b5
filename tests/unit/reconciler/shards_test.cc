#include "reconciler/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/invariant.h"
#include "core/random.h"

namespace holdfast::reconciler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::map<std::string, int> loads(const std::vector<std::string>& plan) {
  std::map<std::string, int> count;
  for (const std::string& owner : plan) ++count[owner];
  return count;
}

std::vector<std::string> some_members(Random& random, int count) {
  std::set<std::string> names;
  while (static_cast<int>(names.size()) < count) {
    names.insert("replica-" + std::to_string(random.below(1'000'000)));
  }
  return {names.begin(), names.end()};
}

TEST(ShardLabel, SaysAShardOfThisNumberOfShardsAndNothingElse) {
  EXPECT_EQ(shard_label(7, 32), "7-of-32");
  for (const int shard : {0, 7, 31}) EXPECT_EQ(labelled_shard(shard_label(shard, 32), 32), shard);
  for (const char* const label : {"", "7", "7-of-16", "32-of-32", "-1-of-32", "07-of-32",
                                  "+7-of-32", "7-of-32x", "99999999999-of-32", "of-32"}) {
    EXPECT_EQ(labelled_shard(label, 32), std::nullopt) << label;
  }
}

TEST(ShardOf, AFixedOneStaysUntilThereAreOthers) {
  const std::string key = fixed_shard_key("7-of-32", "uid");
  EXPECT_EQ(shard_of(key, 32), 7);
  EXPECT_EQ(shard_of(key, 64), shard_of("uid", 64));
  EXPECT_EQ(fixed_shard_key("", "uid"), "uid");
  EXPECT_EQ(shard_of(fixed_shard_key("40-of-32", "uid"), 32), shard_of("uid", 32));
}

TEST(ShardKey, AJobHasTheShardOfItsStatusUntilThereAreOthers) {
  Job job;
  job.uid = "uid";
  job.namespace_ = "media";
  EXPECT_EQ(shard_key(job), "uid") << "nobody has looked at it";
  job.status.shard = "7-of-32";
  EXPECT_EQ(shard_of(shard_key(job), 32), 7);
  EXPECT_EQ(shard_of(shard_key(job), 64), shard_of("uid", 64));
  job.queue = QueueRef{};
  EXPECT_EQ(shard_of(shard_key(job), 32), 7) << "whose holder sees it";
  EXPECT_EQ(shard_of(shard_key(job), 64), shard_of("media", 64));
  EXPECT_EQ(own_shard_key(job), "media");
}

TEST(ShardKey, OfAQueueOrAPoolAJobHasNoOtherShardThanItsNamespace) {
  Job job;
  job.uid = "uid";
  job.namespace_ = "media";
  const int right = shard_of("media", 32);
  job.status.shard = shard_label((right + 1) % 32, 32);
  EXPECT_FALSE(belongs_elsewhere(job, 32)) << "it has neither, and may have any";
  job.has_pool = true;
  EXPECT_TRUE(belongs_elsewhere(job, 32));
  EXPECT_FALSE(belongs_elsewhere(job, 64)) << "there are others now";
  job.deleting = true;
  EXPECT_FALSE(belongs_elsewhere(job, 32)) << "what is left to do needs neither";
  job.deleting = false;
  job.status.shard = shard_label(right, 32);
  EXPECT_FALSE(belongs_elsewhere(job, 32));
}

TEST(ShardKey, TheJobOfABatchJobHasThatOnesShard) {
  Job job;
  job.uid = "uid";
  job.fixed_shard = fixed_shard_key("3-of-32", "uid");
  EXPECT_EQ(shard_of(shard_key(job), 32), 3);
  job.status.shard = "7-of-32";
  EXPECT_EQ(shard_of(shard_key(job), 32), 7);
  EXPECT_EQ(shard_of(own_shard_key(job), 32), 3);
  EXPECT_EQ(shard_of(shard_key(job), 64), shard_of("uid", 64));
}

TEST(DueShardLabel, APodGetsTheShardOfItsJobUnlessItsHolderLooksAtItAnyway) {
  Job job;
  job.uid = "uid";
  job.namespace_ = "media";
  const std::string of_uid = shard_label(shard_of("uid", 32), 32);
  const std::string other = shard_label((shard_of("uid", 32) + 1) % 32, 32);
  EXPECT_EQ(due_shard_label(job, of_uid, 32), "");
  EXPECT_EQ(due_shard_label(job, other, 32), of_uid);
  job.status.shard = other;
  EXPECT_EQ(due_shard_label(job, other, 32), "");
  EXPECT_EQ(due_shard_label(job, of_uid, 32), other);
  for (const char* const nothing : {"", "3-of-16"}) {
    EXPECT_EQ(due_shard_label(job, nothing, 32), other) << "another one looks for its job";
    job.status.shard = of_uid;
    EXPECT_EQ(due_shard_label(job, nothing, 32), "") << "it leads back to its job";
    job.status.shard = other;
  }
  job.status.shard = "3-of-16";
  EXPECT_EQ(due_shard_label(job, other, 32), of_uid) << "there are others now";
}

// Otherwise the pod would go back and forth until the status is right.
TEST(DueShardLabel, OfAJobThatBelongsElsewhereItIsTheRightOne) {
  Job job;
  job.uid = "uid";
  job.namespace_ = "media";
  job.queue = QueueRef{};
  const std::string right = shard_label(shard_of("media", 32), 32);
  job.status.shard = shard_label((shard_of("media", 32) + 1) % 32, 32);
  ASSERT_TRUE(belongs_elsewhere(job, 32));
  EXPECT_EQ(due_shard_label(job, right, 32), "");
  EXPECT_EQ(due_shard_label(job, job.status.shard, 32), right);
  job.deleting = true;
  EXPECT_EQ(due_shard_label(job, right, 32), job.status.shard) << "whose holder ends it";
}

TEST(PlanShards, GivesEveryShardToAMemberAndEachMemberTheSameNumberOrOneMore) {
  SeededRandom random(1);
  for (int round = 0; round < 200; ++round) {
    const int shards = 1 + static_cast<int>(random.below(100));
    const auto members = some_members(random, 1 + static_cast<int>(random.below(9)));
    const auto plan = plan_shards(shards, members);
    ASSERT_EQ(plan.size(), static_cast<std::size_t>(shards));
    const auto count = loads(plan);
    const int share = shards / static_cast<int>(members.size());
    for (const auto& [owner, load] : count) {
      ASSERT_TRUE(std::count(members.begin(), members.end(), owner) == 1) << owner;
      ASSERT_TRUE(load == share || load == share + 1) << load << " of " << shards;
    }
    for (const std::string& member : members) {
      ASSERT_TRUE(share == 0 || count.count(member) == 1) << member << " has nothing";
    }
  }
}

TEST(PlanShards, IsTheSameInWhateverOrderTheMembersAreKnown) {
  SeededRandom random(2);
  auto members = some_members(random, 5);
  const auto plan = plan_shards(32, members);
  std::reverse(members.begin(), members.end());
  EXPECT_EQ(plan_shards(32, members), plan);
  members.push_back(members.front());
  EXPECT_EQ(plan_shards(32, members), plan) << "a name that is told twice is one member";
}

TEST(PlanShards, MovesLittleMoreThanItMustWhenAMemberComesOrGoes) {
  SeededRandom random(3);
  int moved = 0;
  int least = 0;
  for (int round = 0; round < 100; ++round) {
    const auto members = some_members(random, 4);
    const auto before = plan_shards(32, {members.begin(), members.end() - 1});
    const auto after = plan_shards(32, members);
    least += 8;
    for (std::size_t i = 0; i < before.size(); ++i) moved += before[i] != after[i] ? 1 : 0;
  }
  EXPECT_GE(moved, least);
  EXPECT_LE(moved, 2 * least) << "a plan anew would move about three quarters of all shards";
}

TEST(PlanShards, WithoutMembersNobodyOwnsAnything) {
  EXPECT_EQ(plan_shards(3, {}), std::vector<std::string>(3));
}

TEST(ShardOf, SpreadsUidsThatDifferInOneCharacter) {
  std::map<int, int> count;
  for (int i = 0; i < 3200; ++i) {
    const int shard = shard_of("7e3b1f1a-0000-4000-8000-" + std::to_string(100000 + i), 32);
    ASSERT_GE(shard, 0);
    ASSERT_LT(shard, 32);
    ++count[shard];
  }
  ASSERT_EQ(count.size(), 32u);
  for (const auto& [shard, jobs] : count) {
    EXPECT_GT(jobs, 50) << shard;
    EXPECT_LT(jobs, 160) << shard;
  }
}

// One shard, planned for `self` or for `other`, both alive.
struct Case {
  std::string holder;
  bool held = false;
  bool busy = false;
  bool pending = false;
};

class OneShard : public ::testing::Test {
 protected:
  ShardDecision decide(bool planned_for_self, const Case& shard) {
    ShardsView view;
    view.acting = acting;
    const std::string winner = plan_shards(1, {"one", "two"})[0];
    const std::string loser = winner == "one" ? "two" : "one";
    view.self = planned_for_self ? winner : loser;
    other = planned_for_self ? loser : winner;
    view.members = members;
    view.members[view.self].alive = true;
    view.members[other].alive = true;
    ShardState state;
    state.holder = shard.holder == "self"    ? view.self
                   : shard.holder == "other" ? other
                                             : shard.holder;
    state.held = shard.held;
    state.busy = shard.busy;
    state.pending = shard.pending;
    view.shards = {state};
    return decide_shards(view)[0];
  }
  ShardAction action(bool planned_for_self, const Case& shard) {
    return decide(planned_for_self, shard).action;
  }

  bool acting = true;
  std::map<std::string, MemberState> members;
  std::string other;
};

TEST_F(OneShard, AFreeOneIsTakenByItsPlannedOwnerAlone) {
  EXPECT_EQ(action(true, {""}), ShardAction::kTake);
  EXPECT_EQ(action(false, {""}), ShardAction::kNone);
}

TEST_F(OneShard, IsNotTakenFromALiveHolder) {
  EXPECT_EQ(action(true, {"other"}), ShardAction::kNone);
}

TEST_F(OneShard, IsTakenOverFromADeadOrVanishedHolderAfterALiveLook) {
  members["dead"].alive = false;
  EXPECT_EQ(action(true, {"dead"}), ShardAction::kTakeOver);
  EXPECT_EQ(action(true, {"vanished"}), ShardAction::kTakeOver);
  EXPECT_EQ(action(false, {"dead"}), ShardAction::kNone);
}

TEST_F(OneShard, IsHandedOverOnlyWhenNothingIsInFlight) {
  EXPECT_EQ(action(false, {"self", true, /*busy=*/true}), ShardAction::kDrain);
  EXPECT_EQ(action(false, {"self", true, /*busy=*/false}), ShardAction::kRelease);
  EXPECT_EQ(action(true, {"self", true, true}), ShardAction::kNone);
}

TEST_F(OneShard, OfAnEarlierTenureIsTakenAgainOrGivenAway) {
  EXPECT_EQ(action(true, {"self", /*held=*/false}), ShardAction::kTake);
  EXPECT_EQ(action(false, {"self", /*held=*/false}), ShardAction::kRelease);
}

TEST_F(OneShard, IsDroppedAtOnceWhenItsLeaseSaysAnother) {
  EXPECT_EQ(action(true, {"other", /*held=*/true, /*busy=*/true}), ShardAction::kDrop);
  EXPECT_EQ(action(false, {"other", true}), ShardAction::kDrop);
  EXPECT_EQ(action(true, {"", true}), ShardAction::kDrop);
  EXPECT_EQ(action(true, {"other", true, false, /*pending=*/true}), ShardAction::kDrop);
}

TEST_F(OneShard, IsLeftAloneWhileAWriteOfItIsUnderWay) {
  EXPECT_EQ(action(true, {"", false, false, /*pending=*/true}), ShardAction::kNone);
}

TEST_F(OneShard, IsLeftAloneByAReplicaThatMayNotAct) {
  acting = false;
  for (const char* const holder : {"", "self", "other", "dead"}) {
    EXPECT_EQ(action(true, {holder}), ShardAction::kNone) << holder;
    EXPECT_EQ(action(false, {holder}), ShardAction::kNone) << holder;
  }
}

TEST_F(OneShard, GoesToAnotherWhereItsOwnerStepsAside) {
  const std::string winner = plan_shards(1, {"one", "two"})[0];
  const std::string loser = winner == "one" ? "two" : "one";
  members[winner].aside = true;
  EXPECT_EQ(decide(true, {"self", /*held=*/true}).owner, loser);
  EXPECT_EQ(action(true, {"self", true, /*busy=*/true}), ShardAction::kDrain);
  EXPECT_EQ(action(true, {"self", true}), ShardAction::kRelease);
  EXPECT_EQ(action(true, {""}), ShardAction::kNone);
  EXPECT_EQ(action(false, {""}), ShardAction::kTake);
  EXPECT_EQ(action(false, {"other"}), ShardAction::kNone) << "not before it is given up";
}

TEST_F(OneShard, StaysWhereAllStepAside) {
  members["one"].aside = members["two"].aside = true;
  EXPECT_EQ(action(true, {"self", /*held=*/true}), ShardAction::kNone);
  EXPECT_EQ(action(true, {""}), ShardAction::kTake);
}

TEST_F(OneShard, IsGivenUpByAReplicaThatMayNotActOnceItHasSteppedAside) {
  acting = false;
  members[plan_shards(1, {"one", "two"})[0]].aside = true;
  EXPECT_EQ(action(true, {"self"}), ShardAction::kRelease);
  EXPECT_EQ(action(true, {"self", false, /*busy=*/true}), ShardAction::kNone)
      << "what was begun before may still write";
  EXPECT_EQ(action(true, {"self", false, false, /*pending=*/true}), ShardAction::kNone);
  EXPECT_EQ(action(true, {"other"}), ShardAction::kNone);
  EXPECT_EQ(action(true, {""}), ShardAction::kNone);
  members["one"].aside = members["two"].aside = true;
  EXPECT_EQ(action(true, {"self"}), ShardAction::kNone) << "nobody else would take it";
}

TEST_F(OneShard, AlwaysComesWithTheReason) {
  for (const char* const holder : {"", "self", "other", "dead"}) {
    for (const bool planned : {true, false}) {
      const ShardDecision decision = decide(planned, {holder});
      EXPECT_FALSE(decision.why.empty());
      EXPECT_EQ(decision.owner == other, !planned);
    }
  }
}

// Shards of two members that are alive.
ShardsView world_of_two(int shards) {
  ShardsView view;
  view.self = "self";
  view.acting = true;
  view.members["self"].alive = true;
  view.members["other"].alive = true;
  view.shards.resize(static_cast<std::size_t>(shards));
  return view;
}

TEST(Wanted, AreTheShardsThatArePlannedForUsAndThoseThatWeStillHold) {
  ShardsView view = world_of_two(8);
  const std::vector<ShardDecision> decisions = decide_shards(view);
  std::set<int> planned;
  int foreign = 0;
  for (int shard = 0; shard < 8; ++shard) {
    if (decisions[static_cast<std::size_t>(shard)].owner == "self") {
      planned.insert(shard);
    } else {
      foreign = shard;
    }
  }
  ASSERT_EQ(planned.size(), 4u);
  EXPECT_EQ(wanted_shards(view, decisions, {}), planned);
  view.shards[static_cast<std::size_t>(foreign)].held = true;
  planned.insert(foreign);
  EXPECT_EQ(wanted_shards(view, decisions, {}), planned);
}

TEST(Wanted, AreAlsoTheShardsThatWouldBeOursIfTheMembersThatMissRenewalsWereDead) {
  const ShardsView view = world_of_two(8);
  EXPECT_EQ(wanted_shards(view, decide_shards(view), {"other"}).size(), 8u);
}

TEST(Take, OnlyABugTakesAShardFromAMemberThatIsAlive) {
  ShardsView view;
  view.self = "self";
  view.acting = true;
  view.members = {{"self", {true}}, {"other", {true}}, {"dead", {false}}};
  for (const char* const holder : {"", "self", "dead", "gone"}) {
    EXPECT_NO_THROW(check_take(view, holder)) << holder;
  }
  EXPECT_THROW(check_take(view, "other"), BrokenInvariant);
}

TEST(Timings, TheDefaultsFit) { EXPECT_EQ(misfit(MemberTimings()), ""); }

TEST(Timings, WhatDoesNotFitIsNamedByItsFlag) {
  const auto wrong = [](Duration lease, Duration deadline, Duration retry) {
    return misfit({lease, deadline, retry});
  };
  EXPECT_NE(wrong(seconds(10), seconds(10), seconds(2)).find("--lease-duration"),
            std::string::npos);
  EXPECT_NE(wrong(milliseconds(15'500), seconds(10), seconds(2)).find("whole seconds"),
            std::string::npos);
  EXPECT_NE(wrong(seconds(15), milliseconds(2400), seconds(2)).find("--renew-deadline"),
            std::string::npos);
  EXPECT_EQ(wrong(seconds(15), milliseconds(2401), seconds(2)), "");
  EXPECT_NE(wrong(seconds(60), seconds(40), seconds(5)).find("--retry-period"), std::string::npos);
  EXPECT_NE(wrong(seconds(2), seconds(1), milliseconds(99)).find("--retry-period"),
            std::string::npos);
  EXPECT_NE(wrong(std::chrono::hours(2), seconds(10), seconds(2)).find("--lease-duration"),
            std::string::npos);
}

}  // namespace
}  // namespace holdfast::reconciler
