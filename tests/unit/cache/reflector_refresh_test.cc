// A refresh: what was kept is not listed again, and nothing is believed that was not shown.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/cache/machine_fixture.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;
using namespace test;

class RefreshTest : public MachineTest {
 protected:
  // Watching at 7 again, for a short time, after a refresh; the server is at this version by now.
  void refreshed(std::uint64_t server_version) {
    watching(7, {object("a", 5)});
    in(machine.refresh(now));
    EXPECT_TRUE(says<action::CloseWatch>()) << "it may be cut off, though it seems open";
    ASSERT_EQ(list.wanted, action::Wanted::kVersion);
    in(machine.page(list.epoch, page(server_version), now));
    EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=7");
    in(machine.watch_opened(watch.epoch, now));
    EXPECT_TRUE(machine.live());
  }
  // The short watch brought nothing, and ends.
  void long_watch() {
    now += RefreshCheck::kShortWatch;
    watch_ends();
    EXPECT_FALSE(machine.fresh());
    looks_and_watches(20);
    in(machine.watch_opened(watch.epoch, now));
  }
  void looks_and_watches(std::uint64_t server_version) {
    ASSERT_EQ(list.wanted, action::Wanted::kVersion);
    in(machine.page(list.epoch, page(server_version), now));
    ASSERT_TRUE(says<action::Watch>());
    EXPECT_GE(watch.timeout, 5min);
  }
  void metadata_comes(std::uint64_t version) {
    long_watch();
    listed_metadata(version);
  }
  void listed_metadata(std::uint64_t version) {
    timer_runs();
    ASSERT_EQ(list.wanted, action::Wanted::kMetadata);
    EXPECT_EQ(list.query, "") << "consistent, in one answer: the server has it in memory";
    in(machine.page(list.epoch, page(version, {object("a", 5)}), now));
    ASSERT_TRUE(says<action::Compare>());
    EXPECT_FALSE(machine.fresh());
  }
};

TEST_F(RefreshTest, AWatchThatPassesTheServersVersionIsAllThatIsNeeded) {
  refreshed(20);
  EXPECT_FALSE(machine.fresh());
  events({added(object("b", 19))});
  EXPECT_FALSE(machine.fresh());
  events({bookmark(20)});
  EXPECT_TRUE(machine.fresh());
  EXPECT_TRUE(in(machine.timer(timer.epoch, now + 1s)).empty()) << "nothing is listed";
}

TEST_F(RefreshTest, WhereNothingHasHappenedAtAllItIsFreshAtOnce) {
  refreshed(7);
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, OfAQuietKindAShortWatchBringsTheBookmark) {
  refreshed(20);
  EXPECT_EQ(watch.timeout, RefreshCheck::kShortWatch);
  events({bookmark(20)});
  EXPECT_TRUE(machine.fresh());
  now += RefreshCheck::kShortWatch;
  watch_ends();
  looks_and_watches(20);
  EXPECT_EQ(watch.query, "allowWatchBookmarks=true&resourceVersion=20");
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, AShortWatchThatTheServerDoesNotEndIsClosed) {
  refreshed(20);
  EXPECT_GT(timer.delay, RefreshCheck::kShortWatch);
  timer_runs();
  EXPECT_TRUE(says<action::CloseWatch>());
  looks_and_watches(20);
}

TEST_F(RefreshTest, WithoutABookmarkMetadataAloneIsListed) {
  refreshed(20);
  metadata_comes(21);
  in(machine.compared(compare.epoch, 0, now));
  EXPECT_TRUE(machine.fresh());
  EXPECT_EQ(machine.version(), 7u) << "the watch goes on from there";
}

TEST_F(RefreshTest, WhatDiffersTheWatchHasToBring) {
  refreshed(20);
  metadata_comes(21);
  in(machine.compared(compare.epoch, 1, now));
  EXPECT_FALSE(machine.fresh());
  timer_runs();
  ASSERT_TRUE(says<action::Compare>());
  in(machine.compared(compare.epoch, 0, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, WhatTheWatchDoesNotBringIsListed) {
  refreshed(20);
  metadata_comes(21);
  const SteadyTime before = now;
  while (!says<action::List>()) {
    in(machine.compared(compare.epoch, 1, now));
    if (!says<action::List>()) timer_runs();
    ASSERT_LE(now - before, RefreshCheck::kCatchUp);
  }
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_EQ(list.query, "limit=500");
  in(machine.page(list.epoch, page(22), now));
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, AConsistentListThatBeganAfterItIsAllThatIsNeeded) {
  watching(7);
  watch_ends(connection_refused());
  in(machine.refresh(now));
  timer_runs();
  in(machine.page(list.epoch, page(20), now));  // the look
  watch_ends(gone());
  EXPECT_EQ(list.query, "limit=500");
  in(machine.page(list.epoch, page(20), now));
  EXPECT_FALSE(machine.fresh());
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, AListThatBeganBeforeItShowsNothing) {
  watching(7);
  watch_ends(gone());
  in(machine.refresh(now));
  in(machine.page(list.epoch, page(20), now));
  EXPECT_TRUE(says<action::Replace>());
  EXPECT_EQ(list.wanted, action::Wanted::kVersion);
  in(machine.page(list.epoch, page(20), now));
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, AFailedListOfMetadataIsTriedAgainWhenTheServerWantsIt) {
  refreshed(20);
  long_watch();
  timer_runs();
  Error throttled = http_error(ErrorCode::kThrottled, 429);
  throttled.retry_after = 20s;
  in(machine.list_failed(list.epoch, throttled, now));
  EXPECT_TRUE(machine.live()) << "the watch is open all the while";
  EXPECT_FALSE(machine.fresh());
  EXPECT_GE(timer.delay, Duration(20s));
  listed_metadata(21);
  in(machine.compared(compare.epoch, 0, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, MetadataThatIsTooLargeForOneAnswerMeansAListInPages) {
  refreshed(20);
  long_watch();
  timer_runs();
  in(machine.list_failed(list.epoch, make_error(ErrorCode::kTerminal, "too large"), now));
  EXPECT_EQ(list.wanted, action::Wanted::kObjects);
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(RefreshTest, AWatchThatBreaksMeanwhileBeginsItAgain) {
  refreshed(20);
  long_watch();
  timer_runs();
  const Epoch metadata = list.epoch;
  watch_ends(connection_refused());
  EXPECT_TRUE(in(machine.page(metadata, page(21), now)).empty());
  reconnects(30);
  EXPECT_FALSE(machine.fresh());
  events({bookmark(29)});
  EXPECT_FALSE(machine.fresh());
  events({bookmark(30)});
  EXPECT_TRUE(machine.fresh());
}

TEST_F(RefreshTest, AServerThatWasSetBackIsListed) {
  watching(70);
  in(machine.refresh(now));
  in(machine.page(list.epoch, page(40), now));
  EXPECT_EQ(list.query, "limit=500");
  in(machine.page(list.epoch, page(41), now));
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
  EXPECT_EQ(machine.time_travels(), 1u);
}

TEST_F(RefreshTest, WhatMustBeListedIsSpread) {
  std::set<Duration> delays;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom other(seed);
    ReflectorMachine one(config(false), other);
    const auto first = only<action::List>(one.start());
    one.page(first->epoch, page(7), now);
    const auto look = only<action::List>(one.refresh(now));
    const auto opened = only<action::Watch>(one.page(look->epoch, page(9), now));
    one.watch_opened(opened->epoch, now);
    const auto end = now + RefreshCheck::kShortWatch;
    const auto next = only<action::List>(one.watch_ended(opened->epoch, std::nullopt, end));
    const auto again = only<action::Watch>(one.page(next->epoch, page(9), end));
    const auto pause = only<action::ArmTimer>(one.watch_opened(again->epoch, end));
    EXPECT_GE(pause->delay, RefreshCheck::kPassAtLeast);
    EXPECT_LE(pause->delay, RefreshCheck::kPassAtMost);
    delays.insert(pause->delay);
  }
  EXPECT_GT(delays.size(), 15u);
}

class StreamedRefreshTest : public MachineTest {
 protected:
  StreamedRefreshTest() : MachineTest(/*streaming=*/true) {}
};

TEST_F(StreamedRefreshTest, AStreamedListThatBeganBeforeItShowsNothing) {
  in(machine.start());
  in(machine.watch_opened(watch.epoch, now));
  in(machine.refresh(now));
  events({added(object("a", 5)), bookmark(7, /*end=*/true)});
  EXPECT_TRUE(says<action::Replace>());
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_FALSE(machine.fresh());
  in(machine.page(list.epoch, page(7), now));
  in(machine.watch_opened(watch.epoch, now));
  EXPECT_TRUE(machine.fresh());
}

TEST_F(StreamedRefreshTest, AStreamedListAfterItIsAllThatIsNeeded) {
  in(machine.start());
  in(machine.watch_opened(watch.epoch, now));
  events({bookmark(7, /*end=*/true)});
  in(machine.refresh(now));
  in(machine.page(list.epoch, page(9), now));
  watch_ends(gone());
  in(machine.watch_opened(watch.epoch, now));
  events({bookmark(12, /*end=*/true)});
  EXPECT_TRUE(machine.fresh());
}

}  // namespace
}  // namespace holdfast::cache
