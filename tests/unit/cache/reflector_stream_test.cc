// Lists that arrive through the watch.
#include "client/cache/reflector_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cache/machine_fixture.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StreamTest : public MachineTest {
 protected:
  StreamTest() : MachineTest(true) {
    in(machine.start());
    in(machine.watch_opened(watch.epoch, now));
  }
  void streams(std::vector<kube::WatchEvent> batch) {
    in(machine.events(watch.epoch, std::move(batch), now));
  }
  void synced(std::uint64_t version) {
    streams({bookmark(version, /*end=*/true)});
    ASSERT_TRUE(machine.live());
  }
};

TEST_F(StreamTest, TheListArrivesThroughTheWatch) {
  EXPECT_EQ(watch.query,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  EXPECT_FALSE(says<action::List>());
}

TEST_F(StreamTest, ItIsHeldBackUntilTheEndMarkAndTheVersionDoesNotAdvance) {
  streams({added(object("a", 5)), added(object("b", 9)), bookmark(12)});
  EXPECT_FALSE(says<action::Replace>());
  EXPECT_EQ(machine.version(), 0u);
  EXPECT_FALSE(machine.live());
  EXPECT_FALSE(machine.synced());
  streams({modified(object("a", 13)), deleted(object("b", 14)), bookmark(15, /*end=*/true),
           added(object("c", 16))});
  const auto replace = only<action::Replace>(said);
  ASSERT_TRUE(replace);
  ASSERT_EQ(replace->items.size(), 1u);
  EXPECT_EQ(replace->items[0]->version, 13u);
  EXPECT_EQ(replace->version, 15u);
  const auto apply = only<action::Apply>(said);
  ASSERT_TRUE(apply) << "the rest of the batch are events of the watch";
  EXPECT_EQ(apply->version, 16u);
  EXPECT_TRUE(machine.live()) << "the same watch goes on";
  EXPECT_FALSE(says<action::Watch>());
}

TEST_F(StreamTest, AServerThatRefusesItIsListedInPagesAtOnceAndFromThenOn) {
  in(machine.watch_ended(watch.epoch, http_error(ErrorCode::kInvalid, 422), now));
  EXPECT_EQ(list.query, "resourceVersion=0&limit=500");
  EXPECT_FALSE(says<action::ArmTimer>());
  in(machine.page(list.epoch, page(7), now));
  in(machine.watch_opened(watch.epoch, now));
  in(machine.watch_ended(watch.epoch, gone(), now));
  EXPECT_EQ(list.query, "limit=500");
}

TEST_F(StreamTest, AStreamThatBreaksIsThrownAwayAndTriedAgain) {
  streams({added(object("a", 5))});
  in(machine.watch_ended(watch.epoch, connection_refused(), now));
  timer_runs();
  EXPECT_THAT(watch.query, HasSubstr("sendInitialEvents"));
  in(machine.watch_opened(watch.epoch, now));
  streams({added(object("b", 5)), bookmark(6, /*end=*/true)});
  EXPECT_THAT(names(only<action::Replace>(said)->items), ElementsAre("b"));
}

TEST_F(StreamTest, StreamsThatNeverGetToTheirEndAreGivenUpForPages) {
  for (int i = 1; i < ReflectorList::kStreamTries; ++i) {
    in(machine.watch_ended(watch.epoch, std::nullopt, now));
    timer_runs();
    in(machine.watch_opened(watch.epoch, now));
  }
  in(machine.watch_ended(watch.epoch, std::nullopt, now));
  timer_runs();
  EXPECT_TRUE(says<action::List>());
}

TEST_F(StreamTest, AServerThatIsDownIsNotTakenForOneThatCannotStream) {
  in(machine.watch_ended(watch.epoch, connection_refused(), now));
  for (int i = 0; i < 20; ++i) {
    timer_runs();
    in(machine.watch_ended(watch.epoch, connection_refused(), now));
  }
  timer_runs();
  EXPECT_THAT(watch.query, HasSubstr("sendInitialEvents"));
}

TEST_F(StreamTest, TwoGoodMinutesCountFromTheEndMark) {
  for (int i = 0; i < 6; ++i) {
    in(machine.watch_ended(watch.epoch, connection_refused(), now));
    timer_runs();
  }
  in(machine.watch_opened(watch.epoch, now));
  synced(5);
  now += 120s;
  in(machine.watch_ended(watch.epoch, connection_refused(), now));
  EXPECT_LE(timer.delay, Duration(1200ms));
}

TEST_F(StreamTest, ASilentStreamIsGivenUpForPagesAndABusyOneIsNot) {
  now += 50s;
  streams({added(object("a", 5))});
  now += 10s;
  in(machine.timer(timer.epoch, now));
  EXPECT_FALSE(says<action::CloseWatch>());
  EXPECT_EQ(timer.delay, Duration(50s)) << "from its last event on";
  timer_runs();
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_TRUE(says<action::List>());
}

TEST_F(StreamTest, ItsTimerMeansNothingOnceItIsComplete) {
  synced(5);
  now += 1h;
  EXPECT_TRUE(machine.timer(timer.epoch, now).empty());
}

TEST_F(StreamTest, ARelistIsStreamedNotOlderThanWhatWasSeen) {
  synced(5);
  for (int i = 0; i < ReflectorMachine::kWatchTries; ++i) {
    in(machine.watch_ended(watch.epoch, http_error(ErrorCode::kTransient, 500), now));
    timer_runs();
    if (says<action::List>()) in(machine.page(list.epoch, page(5), now));
  }
  EXPECT_THAT(watch.query, HasSubstr("sendInitialEvents=true"));
  EXPECT_THAT(watch.query, HasSubstr("&resourceVersion=5"));
}

TEST_F(StreamTest, AVersionThatTheServerHasNotReachedMeansAConsistentStreamAndIsATimeTravel) {
  synced(50);
  in(machine.watch_ended(watch.epoch, too_large(), now));
  timer_runs();
  EXPECT_THAT(watch.query, HasSubstr("sendInitialEvents=true"));
  EXPECT_THAT(watch.query, Not(HasSubstr("resourceVersion=")));
  in(machine.watch_opened(watch.epoch, now));
  streams({added(object("a", 30)), bookmark(40, /*end=*/true), added(object("b", 41))});
  EXPECT_FALSE(says<action::Replace>()) << "of equal versions the store's own objects were taken";
  EXPECT_TRUE(says<action::CloseWatch>());
  EXPECT_THAT(watch.query, HasSubstr("sendInitialEvents=true"));
  in(machine.watch_opened(watch.epoch, now));
  streams({added(object("a", 30)), bookmark(40, /*end=*/true)});
  EXPECT_EQ(only<action::Replace>(said)->trust, Trust::kSetBack);
  EXPECT_EQ(only<action::Replace>(said)->items.size(), 1u) << "b came with the stream before";
  EXPECT_EQ(machine.time_travels(), 1u);
}

}  // namespace
}  // namespace holdfast::cache
