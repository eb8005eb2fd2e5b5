// The clock that counts only while a change would have been seen, the records on it, the breaker.
#include "reconciler/staleness.h"

#include <gtest/gtest.h>

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::seconds;

SteadyTime at(int second) { return SteadyTime(seconds(1000 + second)); }

// A clock whose watch opened at 0 and that was proven then.
LiveClock started() {
  LiveClock clock;
  clock.watch(true, at(0));
  clock.proof(at(0));
  return clock;
}
// Proves it every 2 s.
void prove(LiveClock& clock, int from, int to) {
  for (int second = from; second <= to; second += 2) clock.proof(at(second));
}

TEST(LiveClockRule, NothingCountsBeforeTheWatchIsOpenAndProven) {
  LiveClock clock;
  EXPECT_EQ(clock.read(at(10)), seconds(0));
  clock.watch(true, at(10));
  EXPECT_EQ(clock.read(at(20)), seconds(0));
  EXPECT_FALSE(clock.running(at(20)));
  clock.proof(at(20));
  EXPECT_TRUE(clock.running(at(21)));
  EXPECT_EQ(clock.read(at(21)), seconds(1));
}

TEST(LiveClockRule, AProofWithoutAWatchCountsNothing) {
  LiveClock clock;
  prove(clock, 0, 20);
  EXPECT_EQ(clock.read(at(21)), seconds(0));
  clock.watch(true, at(21));
  EXPECT_EQ(clock.read(at(22)), seconds(1));
}

TEST(LiveClockRule, TimeCountsWhileBothHold) {
  LiveClock clock = started();
  prove(clock, 2, 60);
  EXPECT_EQ(clock.read(at(61)), seconds(61));
  EXPECT_EQ(clock.epoch(), seconds(0));
}

TEST(LiveClockRule, AShortGapOfTheWatchDoesNotCountAndStartsNothingAnew) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  prove(clock, 2, 10);
  clock.watch(false, at(10));
  prove(clock, 12, 14);
  clock.watch(true, at(15));
  EXPECT_EQ(clock.read(at(16)), seconds(11));
  EXPECT_EQ(clock.epoch(), epoch);
}

TEST(LiveClockRule, AGapOfOverFiveSecondsStartsAllWindowsAnew) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  prove(clock, 2, 10);
  clock.watch(false, at(10));
  prove(clock, 12, 16);
  clock.watch(true, at(16));
  EXPECT_GT(clock.epoch(), epoch);
  EXPECT_EQ(clock.epoch(), seconds(10));
  EXPECT_EQ(clock.read(at(17)), seconds(11));
}

TEST(LiveClockRule, WithoutProofTheClockStopsThoughTheWatchStaysOpen) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  EXPECT_EQ(clock.read(at(60)), seconds(5));
  EXPECT_FALSE(clock.running(at(60)));
  clock.proof(at(60));
  EXPECT_GT(clock.epoch(), epoch);
  EXPECT_EQ(clock.epoch(), seconds(5));
  EXPECT_EQ(clock.read(at(61)), seconds(6));
}

TEST(LiveClockRule, AGapOfTheProofIsNoticedAlsoIfNobodyLookedMeanwhile) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  clock.proof(at(30));
  EXPECT_GT(clock.epoch(), epoch);
  EXPECT_EQ(clock.read(at(30)), seconds(5));
}

TEST(LiveClockRule, ProofAndWatchThatFailInTurnAreOneGap) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  prove(clock, 2, 10);
  clock.watch(false, at(11));
  clock.watch(true, at(13));  // short, and proven at 10
  EXPECT_EQ(clock.epoch(), epoch);
  clock.watch(false, at(14));
  clock.watch(true, at(17));  // the proof has run out meanwhile
  EXPECT_EQ(clock.epoch(), epoch);
  clock.proof(at(20));
  EXPECT_GT(clock.epoch(), epoch);
}

TEST(LiveClockRule, ReportsOfTheSameStateChangeNothing) {
  LiveClock clock = started();
  const Duration epoch = clock.epoch();
  prove(clock, 2, 20);
  clock.watch(true, at(20));
  EXPECT_EQ(clock.epoch(), epoch);
  EXPECT_EQ(clock.read(at(21)), seconds(21));
}

TEST(Tracker, ARecordIsSilentSinceItWasLastSeenToChange) {
  RecordTracker tracker;
  EXPECT_FALSE(tracker.silent_for("a", seconds(9), seconds(0)));
  tracker.seen("a", 7, seconds(10));
  EXPECT_EQ(tracker.silent_for("a", seconds(13), seconds(0)), seconds(3));
  tracker.seen("a", 7, seconds(20));
  EXPECT_EQ(tracker.silent_for("a", seconds(30), seconds(0)), seconds(20)) << "the same version";
  tracker.seen("a", 8, seconds(30));
  EXPECT_EQ(tracker.silent_for("a", seconds(34), seconds(0)), seconds(4));
  tracker.gone("a");
  EXPECT_FALSE(tracker.silent_for("a", seconds(34), seconds(0)));
}

TEST(Tracker, AVersionThatGoesBackIsASignOfLifeToo) {
  RecordTracker tracker;
  tracker.seen("a", 7, seconds(10));
  tracker.seen("a", 3, seconds(20));
  EXPECT_EQ(tracker.silent_for("a", seconds(21), seconds(0)), seconds(1));
}

TEST(Tracker, AfterAGapTheFullWindowIsWatchedAnew) {
  RecordTracker tracker;
  tracker.seen("a", 7, seconds(10));
  EXPECT_EQ(tracker.silent_for("a", seconds(50), seconds(45)), seconds(5));
}

class Breaker : public ::testing::Test {
 protected:
  // This many others changed at 100 and renew until `until`, of live time.
  void add(int count, int until) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "node-" + std::to_string(tracker_.size());
      tracker_.seen(name, 1, seconds(90));
      tracker_.seen(name, 2, seconds(until));
    }
  }
  bool trips(Duration epoch = seconds(0)) const {
    return tracker_.breaker("judged", seconds(40), [&](const std::string&) {
      return LiveTime{seconds(200), epoch};
    });
  }
  RecordTracker tracker_;
};

TEST_F(Breaker, TripsWhenMoreThanFiftyFivePercentAreSilentForOverHalfTheWindow) {
  add(11, 179);
  add(9, 199);
  EXPECT_FALSE(trips()) << "exactly 55 %";
  add(1, 179);
  EXPECT_TRUE(trips());
}

TEST_F(Breaker, SilenceUpToHalfTheWindowIsNone) {
  add(10, 180);
  EXPECT_FALSE(trips());
}

TEST_F(Breaker, NeedsThreeOthersAtLeast) {
  add(2, 150);
  EXPECT_FALSE(trips());
  add(1, 150);
  EXPECT_TRUE(trips());
}

// A replica sees the Leases of its own jobs alone. The nodes' say more than two of these.
TEST(BreakerOfFew, OtherRecordsDecideWhileFewerThanThreeCount) {
  bool is_in_doubt = false;
  Duration asked{};
  RecordTracker tracker(nullptr, [&](Duration window) {
    asked = window;
    return is_in_doubt;
  });
  const auto trips = [&] {
    return tracker.breaker("judged", seconds(40), [](const std::string&) {
      return LiveTime{seconds(200), seconds(0)};
    });
  };
  EXPECT_FALSE(trips());
  EXPECT_EQ(asked, seconds(40));
  is_in_doubt = true;
  EXPECT_TRUE(trips());
  for (const char* name : {"a", "b", "c"}) {
    tracker.seen(name, 1, seconds(90));
    tracker.seen(name, 2, seconds(199));
  }
  EXPECT_FALSE(trips()) << "three others live";
}

TEST_F(Breaker, TheJudgedOneDoesNotCountItself) {
  add(2, 150);
  tracker_.seen("judged", 1, seconds(90));
  tracker_.seen("judged", 2, seconds(150));
  EXPECT_FALSE(trips());
}

TEST_F(Breaker, OnlyRecordsThatChangedSinceTheLastGapCount) {
  add(5, 150);
  EXPECT_TRUE(trips(seconds(150)));
  EXPECT_FALSE(trips(seconds(151)));
  for (int i = 0; i < 9; ++i) tracker_.seen("never-" + std::to_string(i), 1, seconds(150));
  EXPECT_TRUE(trips(seconds(150))) << "records that never changed say nothing";
}

// A site switches most of its nodes off at night. A single node that dies then dies alone.
TEST_F(Breaker, RecordsThatFellSilentMoreThanAWindowBeforeDoNotCount) {
  add(9, 100);
  tracker_.seen("judged", 1, seconds(90));
  tracker_.seen("judged", 2, seconds(141));
  EXPECT_FALSE(trips()) << "41 s later";
  add(3, 199);
  EXPECT_FALSE(trips());
  add(4, 150);
  EXPECT_TRUE(trips()) << "4 of the 7 that were alive with it fell silent with it";
}

TEST_F(Breaker, RecordsThatFellSilentUpToAWindowBeforeCount) {
  add(9, 101);
  tracker_.seen("judged", 1, seconds(90));
  tracker_.seen("judged", 2, seconds(141));
  EXPECT_TRUE(trips()) << "40 s later";
}

// One tenant's agents are cut off, e.g. by a NetworkPolicy of its own.
TEST(BreakerGroups, ATenantsSilenceHoldsUpNoVerdictOfAnotherWhoseOthersLive) {
  RecordTracker tracker([](const std::string& key) { return key.substr(0, key.find('/')); });
  const auto add = [&](const std::string& tenant, int count, int until) {
    for (int i = 0; i < count; ++i) {
      const std::string name = tenant + "/" + std::to_string(tracker.size());
      tracker.seen(name, 1, seconds(90));
      tracker.seen(name, 2, seconds(until));
    }
  };
  const auto trips = [&](const std::string& name) {
    return tracker.breaker(name, seconds(40), [](const std::string&) {
      return LiveTime{seconds(200), seconds(0)};
    });
  };
  add("large", 50, 150);
  add("small", 2, 199);
  EXPECT_TRUE(trips("small/judged")) << "two are too few to tell";
  add("small", 1, 199);
  EXPECT_FALSE(trips("small/judged"));
  EXPECT_TRUE(trips("large/judged"));
  EXPECT_TRUE(trips("other/judged"));
  add("small", 5, 150);
  EXPECT_TRUE(trips("small/judged")) << "both are silent";
}

// With 10,000 nodes that fall silent together, each look at each of them would walk over all.
TEST(BreakerTally, ManyRecordsThatFallSilentTogetherAreCountedOnce) {
  constexpr int kRecords = 500;
  const auto name = [](int i) { return "node-" + std::to_string(i); };
  RecordTracker tracker;
  for (const std::uint64_t version : {1, 2}) {
    for (int i = 0; i < kRecords; ++i) {
      tracker.seen(name(i), version, seconds(static_cast<int>(version)));
    }
  }
  int reads = 0;
  const auto clock = [&](const std::string&) {
    ++reads;
    return LiveTime{seconds(50), seconds(0)};
  };
  for (int i = 0; i < kRecords; ++i) {
    EXPECT_TRUE(tracker.held_back(name(i), seconds(40), clock, at(0)));
  }
  EXPECT_LE(reads, 3 * kRecords);
}

TEST(BreakerTally, ACountIsSoonOutOfDate) {
  RecordTracker tracker;
  const std::string names[] = {"a", "b", "c", "d", "e"};
  for (const std::uint64_t version : {1, 2}) {
    for (const std::string& name : names) tracker.seen(name, version, seconds(1));
  }
  const auto clock = [&](const std::string&) { return LiveTime{seconds(50), seconds(0)}; };
  EXPECT_TRUE(tracker.held_back("a", seconds(40), clock, at(0)));
  for (const char* name : {"c", "d", "e"}) tracker.seen(name, 3, seconds(50));
  EXPECT_FALSE(tracker.held_back("b", seconds(40), clock, at(1)));
  EXPECT_TRUE(tracker.held_back("a", seconds(40), clock, at(1))) << "once held, for its window";
}

// The verdict itself: days after the others went, the first node that dies costs one window.
TEST(BreakerTally, WhatHasBeenOffForDaysHoldsNoVerdictBackInAnyGroup) {
  for (const bool grouped : {false, true}) {
    RecordTracker tracker(grouped ? [](const std::string&) { return std::string("tenant"); }
                                  : RecordTracker::GroupOf());
    const seconds days(2 * 24 * 3600);
    for (const std::uint64_t version : {1, 2}) {
      for (const char* const name : {"off-1", "off-2", "off-3", "off-4", "dies", "lives"}) {
        tracker.seen(name, version, seconds(static_cast<int>(version)));
      }
    }
    tracker.seen("dies", 3, days);
    Duration now = days + seconds(40);
    tracker.seen("lives", 3, now);
    const auto clock = [&](const std::string&) { return LiveTime{now, seconds(0)}; };
    EXPECT_FALSE(tracker.held_back("dies", seconds(40), clock, at(0))) << grouped;
    now += seconds(39);
    EXPECT_FALSE(tracker.held_back("dies", seconds(40), clock, at(39))) << grouped;
  }
}

TEST(RecordTrackerRule, AFullTrackerForgetsNothingForARecordThatItKnows) {
  RecordTracker tracker;
  tracker.seen_within(2, "a", 0, seconds(1));
  tracker.seen_within(2, "b", 0, seconds(2));
  tracker.seen_within(2, "a", 0, seconds(9));
  EXPECT_EQ(tracker.silent_for("a", seconds(9), seconds(0)), seconds(8));
  EXPECT_TRUE(tracker.knows("b"));
  tracker.seen_within(2, "c", 0, seconds(10));
  EXPECT_EQ(tracker.size(), 1u);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
