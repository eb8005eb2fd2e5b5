// What the reflector does when the server or the network fails it, and when versions go back.
#include "client/cache/reflector_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cache/machine_fixture.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::HasSubstr;

// ---- 4: errors of a watch.

TEST_F(MachineTest, AnErrorEventOfGoneClosesTheWatchAndLists) {
  watching(7);
  events({added(object("a", 9)), error_event(ErrorCode::kGone, 410), added(object("b", 10))});
  EXPECT_EQ(only<action::Apply>(said)->events.size(), 1u) << "what came before it counts";
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, AThrottledWatchBacksOffAndResumesAtTheSameVersion) {
  watching(7);
  Error throttled = http_error(ErrorCode::kThrottled, 429);
  throttled.retry_after = 5s;
  watch_ends(throttled);
  EXPECT_EQ(timer.delay, Duration(5s)) << "not before the server wants it";
  reconnects(7);
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7");
}

TEST_F(MachineTest, ThrottlingForHoursNeverCostsAList) {
  watching(7);
  for (int i = 0; i < 50; ++i) {
    watch_ends(http_error(ErrorCode::kThrottled, 429));
    reconnects(7);
  }
}

TEST_F(MachineTest, ARetryAfterOfADayIsNotWaitedFor) {
  watching(7);
  Error throttled = http_error(ErrorCode::kThrottled, 429);
  throttled.retry_after = 24h;
  watch_ends(throttled);
  EXPECT_EQ(timer.delay, kLongestAsked);
}

TEST_F(MachineTest, AnErrorEventOfThrottlingBacksOffToo) {
  watching(7);
  events({error_event(ErrorCode::kThrottled, 429)});
  EXPECT_TRUE(says<action::CloseWatch>());
  reconnects(7);
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7");
}

TEST_F(MachineTest, ServerErrorsAreRetriedSoManyTimesThenListed) {
  watching(7);
  int resumed = 0;
  while (true) {
    events({error_event(ErrorCode::kTransient, 500)});
    timer_runs();
    if (list.wanted != action::Wanted::kVersion) break;
    in(machine.page(list.epoch, page(7), now));
    ASSERT_LT(++resumed, 10);
  }
  EXPECT_EQ(resumed, ReflectorMachine::kWatchTries - 1);
  EXPECT_THAT(list.query, HasSubstr("resourceVersion=7"));
}

TEST_F(MachineTest, ARefusedConnectionResumesAtTheSameVersionForAsLongAsItTakes) {
  watching(7);
  watch_ends(connection_refused());
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(machine.live());
    timer_runs();
    ASSERT_EQ(list.wanted, action::Wanted::kVersion);
    in(machine.list_failed(list.epoch, connection_refused(), now));
  }
  reconnects(7);
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7");
  EXPECT_EQ(machine.trouble(), "");
}

TEST_F(MachineTest, ABackOffEndsWhenTheServerIsKnownToAnswerAgain) {
  watching(7);
  watch_ends(connection_refused());
  for (int i = 0; i < 10; ++i) {
    timer_runs();
    in(machine.list_failed(list.epoch, connection_refused(), now));
  }
  const action::ArmTimer grown = timer;
  EXPECT_GT(grown.delay, 10s);
  in(machine.server_answers(now));
  ASSERT_TRUE(says<action::List>());
  EXPECT_EQ(list.wanted, action::Wanted::kVersion);
  // What a restarted server's young cache answers is mended at once too.
  in(machine.page(list.epoch, page(9), now));
  watch_ends(gone());
  ASSERT_TRUE(says<action::List>());
  EXPECT_EQ(list.query, "limit=500");
  EXPECT_TRUE(machine.timer(grown.epoch, now + grown.delay).empty()) << "it was given up";
}

TEST_F(MachineTest, WhatTheServerAskedForIsWaitedForAlsoWhenItIsKnownToAnswerAgain) {
  watching(7);
  Error throttled = http_error(ErrorCode::kThrottled, 429);
  throttled.retry_after = 20s;
  watch_ends(throttled);
  now += 5s;
  in(machine.server_answers(now));
  EXPECT_FALSE(says<action::List>());
  ASSERT_TRUE(says<action::ArmTimer>());
  EXPECT_EQ(timer.delay, Duration(15s));
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kVersion);
}

TEST_F(MachineTest, AnOpenWatchStaysWhenTheServerIsKnownToAnswerAgain) {
  watching(7);
  EXPECT_TRUE(in(machine.server_answers(now)).empty());
  EXPECT_TRUE(machine.live());
}

TEST_F(MachineTest, AWatchThatAlwaysBreaksBeforeItBringsAnythingIsListedAnew) {
  watching(7);
  for (int i = 1; i < ReflectorMachine::kWatchTries; ++i) {
    watch_ends(connection_refused());
    reconnects(7);
  }
  watch_ends(connection_refused());
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kObjects);
  EXPECT_THAT(list.query, HasSubstr("limit=500"));
}

// ---- 5: back-off.

TEST_F(MachineTest, BackOffDoublesFromPointEightSecondsToThirtyWithJitter) {
  in(machine.start());
  Duration base = 800ms;
  for (int i = 0; i < 20; ++i) {
    in(machine.list_failed(list.epoch, connection_refused(), now));
    EXPECT_GE(timer.delay, base);
    EXPECT_LE(timer.delay, base + base / 2);
    EXPECT_LE(timer.delay, Duration(30s));
    timer_runs();
    base = std::min<Duration>(base * 2, 20s);
  }
}

TEST_F(MachineTest, BackOffDiffersBetweenReflectors) {
  SeededRandom other_random(2);
  ReflectorMachine other(config(false), other_random);
  in(machine.start());
  in(machine.list_failed(list.epoch, connection_refused(), now));
  const auto their_list = only<action::List>(other.start());
  const auto theirs =
      only<action::ArmTimer>(other.list_failed(their_list->epoch, connection_refused(), now));
  EXPECT_NE(timer.delay, theirs->delay);
}

TEST_F(MachineTest, TwoGoodMinutesResetTheBackOffAndLessDoesNot) {
  watching(7);
  for (int i = 0; i < 4; ++i) {
    events({bookmark(8 + static_cast<unsigned>(i))});
    watch_ends(connection_refused());
    reconnects(20);
  }
  now += 119s;
  watch_ends(connection_refused());
  EXPECT_GT(timer.delay, Duration(10s));
  reconnects(20);
  now += 120s;
  watch_ends(connection_refused());
  EXPECT_LE(timer.delay, Duration(1200ms));
}

// What a changed CRD does to the watches of its kind: they end, the next ones are throttled while
// the storage starts over, and the ones after learn that their version has expired.
class StorageStartsOverTest : public MachineTest {
 protected:
  // How long nothing is seen.
  Duration starts_over(std::uint64_t version) {
    const SteadyTime before = now;
    watch_ends();
    in(machine.page(list.epoch, page(version), now));  // the look
    Error initializing = http_error(ErrorCode::kThrottled, 429, "storage is (re)initializing");
    initializing.retry_after = 1s;
    watch_ends(initializing);
    reconnects(version);
    events({error_event(ErrorCode::kGone, 410)});
    while (!says<action::List>()) timer_runs();
    EXPECT_EQ(list.query, "limit=500");
    in(machine.page(list.epoch, page(version), now));
    in(machine.watch_opened(watch.epoch, now));
    EXPECT_TRUE(machine.live());
    return now - before;
  }
};

TEST_F(StorageStartsOverTest, TenChangesOfACrdInFiveMinutesCostAtMostTwoSecondsEach) {
  watching(7);
  for (unsigned i = 0; i < 10; ++i) {
    now += 30s;
    EXPECT_LE(starts_over(8 + i), Duration(2s)) << "change " << i + 1;
  }
}

TEST_F(StorageStartsOverTest, ChangesInQuickSuccessionBackOffAndAreForgivenSoon) {
  watching(7);
  Duration longest{0};
  for (unsigned i = 0; i < 6; ++i) {
    now += 2s;
    longest = std::max(longest, starts_over(8 + i));
  }
  EXPECT_GT(longest, Duration(10s)) << "each costs the server a list";
  now += 5s;
  EXPECT_LE(starts_over(20), Duration(2s));
}

TEST_F(MachineTest, AnExpiredVersionIsNoTroubleAndIsListedAtOnceWhateverElseWentWrong) {
  watching(7);
  for (int i = 0; i < 4; ++i) {
    watch_ends(connection_refused());
    reconnects(7);
  }
  watch_ends(gone());
  EXPECT_EQ(list.query, "limit=500");
  EXPECT_TRUE(says<action::List>());
  EXPECT_FALSE(says<action::ArmTimer>());
}

TEST_F(MachineTest, TroubleOfOneKindDoesNotLengthenTheWaitAfterAnother) {
  watching(7);
  for (int i = 0; i < 4; ++i) {
    watch_ends(http_error(ErrorCode::kThrottled, 429));
    reconnects(7);
  }
  EXPECT_GT(timer.delay, Duration(6s));
  watch_ends(connection_refused());
  EXPECT_LE(timer.delay, Duration(1200ms));
  reconnects(7);
  watch_ends(connection_refused());
  EXPECT_GT(timer.delay, Duration(1500ms));
}

// ---- 6: too short.

TEST_F(MachineTest, AWatchThatEndsWithinASecondWithoutAnEventIsAnError) {
  watching(7);
  now += 999ms;
  watch_ends();
  EXPECT_TRUE(says<action::ArmTimer>());
  EXPECT_FALSE(says<action::Watch>());
}

TEST_F(MachineTest, ABookmarkThatSaysNothingNewDoesNotMakeAShortWatchGood) {
  watching(7);
  events({bookmark(7)});
  watch_ends();
  EXPECT_FALSE(says<action::Watch>());
  EXPECT_TRUE(says<action::ArmTimer>());
}

TEST_F(MachineTest, AShortWatchWithAnEventIsAnEnd) {
  watching(7);
  events({added(object("a", 8))});
  now += 500ms;
  watch_ends();
  EXPECT_FALSE(says<action::ArmTimer>());
}

// ---- Time travel.

TEST_F(MachineTest, ALookFollowsALostConnectionBeforeTheWatch) {
  watching(7);
  watch_ends(connection_refused());
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kVersion);
  EXPECT_EQ(list.query, "limit=1");
  EXPECT_FALSE(says<action::Watch>());
}

TEST_F(MachineTest, ALookFollowsACleanEndBeforeItsTime) {
  watching(7);
  now += 30s;
  watch_ends();
  EXPECT_TRUE(says<action::List>());
  EXPECT_EQ(list.wanted, action::Wanted::kVersion);
  in(machine.page(list.epoch, page(9), now));
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7")
      << "the look's version is not the store's";
}

TEST_F(MachineTest, ALookThatShowsALowerVersionReplacesEverythingAndCounts) {
  watching(70, {object("a", 60)});
  watch_ends(connection_refused());
  timer_runs();
  in(machine.page(list.epoch, page(40), now));
  EXPECT_EQ(list.query, "limit=500");
  EXPECT_EQ(machine.time_travels(), 0u) << "counted once the store is replaced";
  // By the time of the list the server's versions may have caught up.
  in(machine.page(list.epoch, page(71, {object("a", 30)}), now));
  EXPECT_EQ(only<action::Replace>(said)->trust, Trust::kSetBack);
  EXPECT_EQ(machine.time_travels(), 1u);
  EXPECT_EQ(machine.version(), 71u);
}

TEST_F(MachineTest, AConsistentListWithALowerVersionIsATimeTravel) {
  watching(70);
  watch_ends(gone());
  in(machine.page(list.epoch, page(40), now));
  EXPECT_EQ(only<action::Replace>(said)->trust, Trust::kSetBack);
  EXPECT_EQ(machine.time_travels(), 1u);
  EXPECT_EQ(machine.version(), 40u);
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=40");
}

TEST_F(MachineTest, AListAtVersionZeroIsNeverATimeTravel) {
  in(machine.start());
  in(machine.page(list.epoch, page(5), now));
  EXPECT_EQ(only<action::Replace>(said)->trust, Trust::kMayBeOld);
  EXPECT_EQ(machine.time_travels(), 0u);
}

}  // namespace
}  // namespace holdfast::cache
