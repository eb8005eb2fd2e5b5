// Since when a Lease has stood without a holder, and whose silence counts.
#include "operator/observe/heartbeat_records.h"

#include <gtest/gtest.h>

#include "tests/support/manual_loop.h"

namespace holdfast::observe {
namespace {

using std::chrono::seconds;

constexpr seconds kWindow{30};

SteadyTime at(int second) { return SteadyTime(seconds(1000 + second)); }

codecs::CachedHeartbeat lease_of(const std::string& name, std::uint64_t version) {
  codecs::CachedHeartbeat lease;
  lease.namespace_ = "media";
  lease.name = name;
  lease.version = lease.lease.version = version;
  lease.lease.uid = "uid-of-" + name;
  lease.lease.attempt = 1;
  lease.lease.holder = lease.lease.granted = name + "-1/pod";
  lease.lease.renewed = true;
  return lease;
}

codecs::CachedHeartbeat taken(std::int64_t attempt) {
  codecs::CachedHeartbeat lease = lease_of("a", 10 + static_cast<std::uint64_t>(attempt));
  lease.lease.attempt = attempt;
  lease.lease.holder.clear();
  lease.lease.renewed = false;
  return lease;
}

Duration taken_for(HeartbeatRecords& records, const codecs::CachedHeartbeat& lease, int second) {
  return records.observe(lease, kWindow, at(second)).taken_for;
}

TEST(HeartbeatRecords, TheWaitGoesOnWhateverAttemptsTheLeaseIsTakenFor) {
  HeartbeatRecords records;
  records.seen(lease_of("a", 1), true, at(0));
  records.seen(taken(2), true, at(10));
  EXPECT_EQ(taken_for(records, taken(2), 15), seconds(5));
  records.seen(taken(3), true, at(20));
  EXPECT_EQ(taken_for(records, taken(3), 25), seconds(15));
}

TEST(HeartbeatRecords, TheWaitBeginsAnewForAnotherLeaseAndAfterAnyGrant) {
  codecs::CachedHeartbeat made_anew = taken(3);
  made_anew.lease.uid = "another";
  codecs::CachedHeartbeat granted_unseen = taken(3);
  granted_unseen.lease.granted = "a-2/pod";
  for (const codecs::CachedHeartbeat& lease : {made_anew, granted_unseen}) {
    HeartbeatRecords records;
    records.seen(taken(2), true, at(10));
    EXPECT_EQ(taken_for(records, lease, 20), seconds(0)) << "read live, not seen yet";
    records.seen(lease, true, at(20));
    EXPECT_EQ(taken_for(records, lease, 25), seconds(5));
  }
  HeartbeatRecords records;
  records.seen(taken(2), true, at(10));
  records.seen(lease_of("a", 50), true, at(20));
  EXPECT_EQ(taken_for(records, lease_of("a", 50), 25), seconds(0)) << "it has a holder";
  records.seen(taken(3), true, at(30));
  EXPECT_EQ(taken_for(records, taken(3), 35), seconds(5));
}

// Renewed at 4; the watch is away from 10 to 20.
TEST(HeartbeatRecords, AHolderThatWroteSinceTheGapIsHeard) {
  HeartbeatRecords records;
  const auto live = [&](bool open, int second) {
    records.watch([open](const std::string&) { return open; }, at(second));
    records.proof(at(second));
  };
  const std::string key = "media/a";
  live(true, 0);
  records.seen(lease_of("a", 1), true, at(0));
  EXPECT_TRUE(records.unheard_since_gap(key, at(2))) << "this life has just begun";
  live(true, 3);
  records.seen(lease_of("a", 2), true, at(4));
  live(true, 6);
  EXPECT_FALSE(records.unheard_since_gap(key, at(8)));
  live(false, 10);
  live(true, 20);
  EXPECT_TRUE(records.unheard_since_gap(key, at(21)));
  records.seen(lease_of("a", 2), true, at(22));
  EXPECT_TRUE(records.unheard_since_gap(key, at(22))) << "being seen is no word";
  records.seen(lease_of("a", 3), true, at(23));
  EXPECT_FALSE(records.unheard_since_gap(key, at(24)));
  EXPECT_FALSE(records.unheard_since_gap("media/unknown", at(24)));
}

TEST(HeartbeatRecords, AViewWithLiveReadsCountsUpToWhenTheyWereAskedFor) {
  HeartbeatRecords records;
  records.watch([](const std::string&) { return true; }, at(0));
  records.proof(at(0));
  const codecs::CachedHeartbeat lease = lease_of("a", 1);
  records.seen(lease, true, at(0));
  for (int second = 2; second <= 8; second += 2) records.proof(at(second));
  LookTimes asked;
  asked.heartbeats = records.live_now("media", at(8));
  asked.steady = at(8);
  for (int second = 10; second <= 20; second += 2) records.proof(at(second));
  const reconciler::LeaseObservation then = records.observe(lease, kWindow, at(20), asked);
  EXPECT_EQ(then.silent_for, seconds(8));
  EXPECT_EQ(then.stalled_for, seconds(8));
  EXPECT_EQ(records.observe(lease, kWindow, at(20)).silent_for, seconds(20));
  records.seen(lease_of("a", 2), true, at(20));
  records.proof(at(22));
  EXPECT_EQ(records.observe(lease_of("a", 2), kWindow, at(22), asked).silent_for, seconds(0));
  EXPECT_EQ(records.observe(lease_of("a", 2), kWindow, at(22)).silent_for, seconds(2));
}

TEST(HeartbeatRecords, AnEndMarkThatALiveReadBroughtHasStoodForNoTime) {
  HeartbeatRecords records;
  codecs::CachedHeartbeat ended = lease_of("a", 2);
  ended.lease.ended = true;
  records.seen(ended, true, at(10));
  LookTimes asked;
  asked.steady = at(9);
  EXPECT_EQ(records.observe(ended, kWindow, at(30), asked).ended_for, seconds(0));
  asked.steady = at(14);
  EXPECT_EQ(records.observe(ended, kWindow, at(30), asked).ended_for, seconds(4));
  EXPECT_EQ(records.observe(ended, kWindow, at(30)).ended_for, seconds(20));
}

// One Lease falls silent at 0, and three others with it.
bool held_back(bool others_are_worked_on) {
  HeartbeatRecords records;
  records.watch([](const std::string&) { return true; }, at(0));
  for (int second = 0; second <= 40; second += 2) {
    records.proof(at(second));
    if (second > 4) continue;
    const auto version = static_cast<std::uint64_t>(10 + second);
    for (const char* const name : {"a", "b", "c", "d"}) {
      records.seen(lease_of(name, version), true, at(second));
    }
  }
  for (const char* const name : {"b", "c", "d"}) {
    records.seen(lease_of(name, 14), others_are_worked_on, at(40));
  }
  return records.observe(lease_of("a", 14), kWindow, at(40)).breaker;
}

TEST(HeartbeatRecords, LeasesThatNobodyWorksOnDoNotHoldAVerdictBack) {
  EXPECT_TRUE(held_back(/*others_are_worked_on=*/true));
  EXPECT_FALSE(held_back(/*others_are_worked_on=*/false));
}

TEST(HeartbeatRecords, ANamespaceThatIsNotWatchedStopsNoOthersClocks) {
  HeartbeatRecords records({"media", "other"});
  const auto watch = [&](bool media, bool other, int second) {
    records.watch([=](const std::string& watched) { return watched == "media" ? media : other; },
                  at(second));
    records.proof(at(second));
  };
  codecs::CachedHeartbeat there = lease_of("b", 1);
  there.namespace_ = "other";
  watch(true, true, 0);
  records.seen(lease_of("a", 1), true, at(0));
  records.seen(there, true, at(0));
  for (int second = 2; second <= 20; second += 2) watch(true, false, second);
  EXPECT_EQ(records.observe(lease_of("a", 1), kWindow, at(20)).silent_for, seconds(20));
  EXPECT_LE(records.observe(there, kWindow, at(20)).silent_for, seconds(2));
}

// What one life has seen, and the next.
class HeartbeatLives : public testing::Test {
 protected:
  struct Life {
    HeartbeatRecords records;
    WindowKeeper windows;
    explicit Life(test::ManualLoop& loop) : windows(loop, Log()) {
      const auto wanted = [](const std::string&, Duration) {
        return WindowKeeper::Wanted{{0}, seconds(600)};
      };
      records.keep_windows(windows, loop, {wanted, wanted, wanted});
      records.watch([](const std::string&) { return true; }, loop.now());
      records.proof(loop.now());
    }
  };
  void pass(Life& life, int seconds_) {
    for (int i = 0; i < seconds_; ++i) {
      loop_.advance(seconds(1));
      life.records.proof(loop_.now());
    }
  }
  reconciler::LeaseObservation observe(Life& life, const codecs::CachedHeartbeat& lease) {
    return life.records.observe(lease, kWindow, loop_.now());
  }
  // A life of 20 s that sees this Lease, and one of 15 s after it.
  reconciler::LeaseObservation after_two_lives(const codecs::CachedHeartbeat& lease,
                                               const codecs::CachedHeartbeat& later) {
    Life first(loop_);
    first.records.seen(lease, true, loop_.now());
    pass(first, 20);
    const std::string record = first.windows.record(0);
    loop_.advance(seconds(1000));
    Life second(loop_);
    second.windows.carry(record);
    second.records.seen(later, true, loop_.now());
    pass(second, 15);
    return observe(second, later);
  }

  test::ManualLoop loop_;
};

TEST_F(HeartbeatLives, ASilentHolderIsSilentInTheNextLifeToo) {
  EXPECT_EQ(after_two_lives(lease_of("a", 7), lease_of("a", 7)).silent_for, seconds(35));
  EXPECT_EQ(after_two_lives(lease_of("a", 7), lease_of("a", 8)).silent_for, seconds(15));
}

TEST_F(HeartbeatLives, TheWaitForAGrantGoesOnInTheNextLife) {
  EXPECT_EQ(after_two_lives(taken(2), taken(2)).taken_for, seconds(35));
  codecs::CachedHeartbeat another = taken(2);
  another.lease.granted = "a-2/pod";
  EXPECT_EQ(after_two_lives(taken(2), another).taken_for, seconds(15));
}

TEST_F(HeartbeatLives, AnEndMarkIsAsOldInTheNextLife) {
  codecs::CachedHeartbeat ended = lease_of("a", 7);
  ended.lease.ended = true;
  EXPECT_EQ(after_two_lives(ended, ended).ended_for, seconds(35));
}

TEST_F(HeartbeatLives, SinceWhenThereIsNoProgressTheAgentKnows) {
  codecs::CachedHeartbeat lease = lease_of("a", 7);
  lease.lease.progress_age = seconds(50);
  Life life(loop_);
  life.records.seen(lease, true, loop_.now());
  pass(life, 5);
  EXPECT_EQ(observe(life, lease).stalled_for, seconds(55));
  loop_.advance(seconds(60));  // nobody watched
  life.records.proof(loop_.now());
  pass(life, 3);
  EXPECT_EQ(observe(life, lease).stalled_for, seconds(3));
}

}  // namespace
}  // namespace holdfast::observe
