// Lists, watches and versions: the rules one by one.
#include "client/cache/reflector_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/cache/machine_fixture.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- 1: lists.

TEST_F(MachineTest, TheFirstListIsAtVersionZeroInPages) {
  in(machine.start());
  EXPECT_EQ(list.query, "resourceVersion=0&limit=500");
  EXPECT_FALSE(machine.synced());
  EXPECT_EQ(machine.version(), 0u);
}

TEST_F(MachineTest, PagesAreReadToTheEndAndDeliveredAtOnce) {
  in(machine.start());
  in(machine.page(list.epoch, page(7, {object("a", 1)}, "to/ken=="), now));
  EXPECT_EQ(list.query, "continue=to%2Fken%3D%3D&limit=500");
  EXPECT_FALSE(says<action::Replace>());
  in(machine.page(list.epoch, page(9, {object("b", 2)}), now));
  const auto replace = only<action::Replace>(said);
  ASSERT_TRUE(replace);
  EXPECT_THAT(names(replace->items), ElementsAre("a", "b"));
  EXPECT_EQ(replace->version, 7u) << "the first page's: later pages show the same version";
  EXPECT_TRUE(machine.synced());
}

TEST_F(MachineTest, AWatchStartsAtTheListsVersionWithBookmarks) {
  in(machine.start());
  in(machine.page(list.epoch, page(7), now));
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7");
  EXPECT_FALSE(machine.live()) << "not before it is open";
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.live());
}

TEST_F(MachineTest, AFailedFirstListIsTriedAgainTheSameWay) {
  in(machine.start());
  in(machine.list_failed(list.epoch, connection_refused(), now));
  EXPECT_FALSE(says<action::List>());
  EXPECT_EQ(machine.trouble(), "refused");
  timer_runs();
  EXPECT_EQ(list.query, "resourceVersion=0&limit=500");
  in(machine.page(list.epoch, page(7), now));
  EXPECT_EQ(machine.trouble(), "");
}

TEST_F(MachineTest, AFirstListThatIsTooLargeForOneAnswerIsReadInPagesAtOnce) {
  in(machine.start());
  in(machine.list_failed(list.epoch, make_error(ErrorCode::kTerminal, "too large"), now));
  ASSERT_TRUE(says<action::List>());
  EXPECT_EQ(list.query, "limit=500") << "from etcd: at version 0 some servers know no limit";
  in(machine.page(list.epoch, page(7, {object("a", 1)}, "token"), now));
  EXPECT_EQ(list.query, "continue=token&limit=500");
  in(machine.page(list.epoch, page(9, {object("b", 2)}), now));
  EXPECT_EQ(only<action::Replace>(said)->items.size(), 2u);
  EXPECT_EQ(machine.version(), 7u);
}

TEST_F(MachineTest, AFirstListThatBreaksOffIsReadInPagesAfterABackOff) {
  in(machine.start());
  Error broke = make_error(ErrorCode::kTransient, "no complete answer in time");
  broke.maybe_applied = true;
  in(machine.list_failed(list.epoch, broke, now));
  EXPECT_FALSE(says<action::List>());
  timer_runs();
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, APageThatIsTooLargeIsAskedForInSmallerOnes) {
  const Error too_large = make_error(ErrorCode::kTerminal, "too large");
  watching(7);
  watch_ends(gone());
  for (const char* const query : {"limit=500", "limit=50", "limit=5", "limit=1"}) {
    ASSERT_TRUE(says<action::List>());
    EXPECT_EQ(list.query, query);
    in(machine.list_failed(list.epoch, too_large, now));
  }
  EXPECT_FALSE(says<action::List>()) << "one object is";
  EXPECT_TRUE(says<action::ArmTimer>());
}

TEST_F(MachineTest, AListInOneAnswerThatIsTooLargeIsReadInPagesAgain) {
  in(machine.start());
  in(machine.page(list.epoch, page(7, {object("a", 1)}, "token"), now));
  in(machine.list_failed(list.epoch, gone(), now));
  EXPECT_EQ(list.query, "");
  in(machine.list_failed(list.epoch, make_error(ErrorCode::kTerminal, "too large"), now));
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, ARelistMustNotBeOlderThanWhatWasSeen) {
  watching(7);
  events({added(object("a", 12))});
  for (int i = 0; i < ReflectorMachine::kWatchTries; ++i) {
    watch_ends(http_error(ErrorCode::kTransient, 500));
    timer_runs();
    if (list.wanted == action::Wanted::kVersion) in(machine.page(list.epoch, page(12), now));
  }
  EXPECT_EQ(list.wanted, action::Wanted::kObjects);
  EXPECT_EQ(list.query, "resourceVersion=12&resourceVersionMatch=NotOlderThan&limit=500");
}

TEST_F(MachineTest, GoneMeansAConsistentListAtOnce) {
  watching(7);
  watch_ends(gone());
  EXPECT_EQ(list.query, "limit=500");
  EXPECT_FALSE(machine.live());
  in(machine.page(list.epoch, page(20, {object("a", 19)}), now));
  EXPECT_EQ(only<action::Replace>(said)->trust, Trust::kConsistent);
  EXPECT_EQ(machine.version(), 20u);
}

TEST_F(MachineTest, GoneAgainAndAgainBacksOff) {
  watching(7);
  watch_ends(gone());
  in(machine.page(list.epoch, page(20), now));
  watch_ends(gone());
  EXPECT_FALSE(says<action::List>());
  EXPECT_TRUE(says<action::ArmTimer>());
  timer_runs();
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, ATokenThatExpiresBetweenPagesMeansOneConsistentListInOneAnswer) {
  in(machine.start());
  in(machine.page(list.epoch, page(7, {object("a", 1)}, "token"), now));
  in(machine.list_failed(list.epoch, gone(), now));
  EXPECT_EQ(list.query, "");
  in(machine.page(list.epoch, page(9, {object("b", 8)}), now));
  EXPECT_THAT(names(only<action::Replace>(said)->items), ElementsAre("b"))
      << "nothing of the broken list";
}

TEST_F(MachineTest, AVersionThatTheServerHasNotReachedMeansAConsistentList) {
  watching(9);
  watch_ends(too_large());
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kObjects);
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, AnOlderListThanWhatWasSeenIsNotTaken) {
  watching(9);
  for (int i = 0; i < ReflectorMachine::kWatchTries; ++i) {
    watch_ends(http_error(ErrorCode::kTransient, 500));
    timer_runs();
    if (list.wanted == action::Wanted::kVersion) in(machine.page(list.epoch, page(9), now));
  }
  in(machine.page(list.epoch, page(5), now));
  EXPECT_FALSE(says<action::Replace>());
  EXPECT_EQ(machine.version(), 9u);
  timer_runs();
  EXPECT_EQ(list.query, "limit=500") << "a consistent one tells";
}

// ---- 2: watches and versions.

TEST_F(MachineTest, AWatchLastsARandomTimeFromFiveToTenMinutes) {
  watching(7);
  std::set<std::chrono::seconds> seen;
  for (int i = 0; i < 200; ++i) {
    EXPECT_GE(watch.timeout, 5min);
    EXPECT_LE(watch.timeout, 10min);
    seen.insert(watch.timeout);
    now += watch.timeout;
    watch_ends();
    in(machine.watch_opened(watch.epoch, now));
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST_F(MachineTest, TheVersionAdvancesWithEventsAndBookmarks) {
  watching(7);
  events({added(object("a", 9)), bookmark(30)});
  EXPECT_EQ(machine.version(), 30u);
  const auto apply = only<action::Apply>(said);
  ASSERT_TRUE(apply);
  EXPECT_EQ(apply->version, 30u);
  EXPECT_EQ(apply->events.size(), 1u) << "bookmarks are no events";
}

TEST_F(MachineTest, AWatchThatEndsInTimeGoesOnFromTheLastVersionAtOnce) {
  watching(7);
  events({added(object("a", 9))});
  now += watch.timeout;
  watch_ends();
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=9");
  EXPECT_FALSE(says<action::ArmTimer>());
  EXPECT_FALSE(says<action::List>());
}

TEST_F(MachineTest, WhatWasReportedBeforeIsNotReportedAgain) {
  watching(7);
  events({added(object("a", 9)), deleted(object("a", 10)), added(object("a", 9)), bookmark(8)});
  EXPECT_EQ(only<action::Apply>(said)->events.size(), 2u);
  EXPECT_EQ(machine.version(), 10u);
}

TEST_F(MachineTest, AnObjectThatCannotBeDecodedIsCountedAndTheVersionAdvances) {
  watching(7);
  kube::WatchEvent unreadable = bookmark(9);
  unreadable.type = kube::WatchEventType::kAdded;
  events({unreadable});
  EXPECT_EQ(machine.undecodable(), 1u);
  EXPECT_EQ(machine.version(), 9u);
}

// ---- Relist, stop and what comes too late.

TEST_F(MachineTest, RelistDropsTheWatchAndListsConsistently) {
  watching(7);
  in(machine.relist());
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_EQ(list.query, "limit=500");
  const Epoch running = list.epoch;
  in(machine.relist());
  EXPECT_TRUE(said.empty()) << "one is under way";
  in(machine.page(running, page(8), now));
  EXPECT_TRUE(says<action::Replace>());
}

TEST_F(MachineTest, RelistDuringABackOffDoesNotShortenIt) {
  watching(7);
  watch_ends(connection_refused());
  in(machine.relist());
  EXPECT_TRUE(said.empty());
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kObjects);
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(MachineTest, AWatchThatLagsIsListedAnewOnceAMinuteAtMost) {
  watching(7);
  int lists = 0;
  for (int second = 0; second < 180; ++second) {
    now += 1s;
    in(machine.watch_lags({}, now));
    if (!says<action::List>()) continue;
    ++lists;
    EXPECT_EQ(list.query, "limit=500");
    in(machine.page(list.epoch, page(8), now));
    in(machine.watch_opened(watch.epoch, now));
  }
  EXPECT_EQ(lists, 3);
}

TEST_F(MachineTest, AWatchThatIsNotOpenDoesNotLag) {
  watching(7);
  watch_ends(connection_refused());
  EXPECT_TRUE(in(machine.watch_lags({}, now)).empty());
  timer_runs();
  EXPECT_EQ(list.wanted, action::Wanted::kVersion) << "it is resumed";
  EXPECT_TRUE(in(machine.watch_lags({}, now)).empty());
}

TEST_F(MachineTest, AnswersToWhatWasGivenUpChangeNothing) {
  watching(7);
  const Epoch old = watch.epoch;
  in(machine.relist());
  EXPECT_TRUE(machine.events(old, {added(object("a", 9))}, now).empty());
  EXPECT_TRUE(machine.watch_ended(old, connection_refused(), now).empty());
  EXPECT_TRUE(machine.watch_opened(old, now).empty());
  EXPECT_TRUE(machine.timer(old, now).empty());
  EXPECT_TRUE(machine.page(old, page(99), now).empty());
  EXPECT_TRUE(machine.list_failed(old, gone(), now).empty());
  EXPECT_EQ(machine.version(), 7u);
}

TEST_F(MachineTest, AStoppedMachineClosesItsWatchAndSaysNothingMore) {
  watching(7);
  in(machine.stop());
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_FALSE(machine.live());
  EXPECT_TRUE(machine.watch_ended(watch.epoch, connection_refused(), now).empty());
  EXPECT_TRUE(machine.relist().empty());
}

}  // namespace
}  // namespace holdfast::cache
