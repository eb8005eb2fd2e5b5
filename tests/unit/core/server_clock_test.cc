#include "core/server_clock.h"

#include <gtest/gtest.h>

#include <random>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// A server whose clock is off by `offset` from the steady clock; Date headers are cut to seconds.
struct Server {
  Duration offset;
  Time wall(SteadyTime steady) const { return Time(steady.time_since_epoch() + offset); }
  Time date(SteadyTime steady) const {
    return Time(std::chrono::floor<std::chrono::seconds>(wall(steady).time_since_epoch()));
  }
};

const SteadyTime kStart{100h};

TEST(ServerClock, IsUnknownUntilTheFirstAnswer) {
  ServerClock clock;
  EXPECT_FALSE(clock.known());
  clock.observe(Time(1000s), kStart, kStart + 10ms);
  EXPECT_TRUE(clock.known());
}

TEST(ServerClock, IsWithinASecondAndTheRoundTripAfterOneAnswer) {
  const Server server{1'700'000'000s + 423ms};
  ServerClock clock;
  const SteadyTime received = kStart + 20ms;
  clock.observe(server.date(kStart + 10ms), kStart, received);
  EXPECT_LE(clock.now(received), server.wall(received));
  EXPECT_GE(clock.now(received), server.wall(received) - 1s - 20ms);
}

TEST(ServerClock, ManyAnswersNarrowItDownAndItIsNeverAheadByMoreThanOneRoundTrip) {
  const Server server{1'700'000'000s + 777ms};
  ServerClock clock;
  std::mt19937 random(1);
  SteadyTime now = kStart;
  for (int i = 0; i < 200; ++i) {
    const Duration there = std::chrono::milliseconds(random() % 20);
    const Duration back = std::chrono::milliseconds(random() % 20);
    clock.observe(server.date(now + there), now, now + there + back);
    now += there + back;
    EXPECT_LE(clock.now(now), server.wall(now) + 40ms);
    now += std::chrono::milliseconds(random() % 300);
  }
  EXPECT_GE(clock.now(now), server.wall(now) - 100ms);
}

TEST(ServerClock, FollowsAServerClockThatIsSteppedForwardsOrBack) {
  for (const Duration step : {Duration(1h), Duration(-1h)}) {
    ServerClock clock;
    Server server{1'700'000'000s};
    clock.observe(server.date(kStart), kStart, kStart + 5ms);
    server.offset += step;
    const SteadyTime later = kStart + 10s;
    clock.observe(server.date(later), later, later + 5ms);
    const Duration off = server.wall(later) - clock.now(later);
    EXPECT_LE(off, 1s + 10ms);
    EXPECT_GE(off, -5ms);
  }
}

TEST(ServerClock, FollowsAClockThatDriftsWithinWhatNtpTolerates) {
  ServerClock clock;
  Server server{1'700'000'000s};
  SteadyTime now = kStart;
  for (int i = 0; i < 3600; ++i) {
    clock.observe(server.date(now), now, now + 2ms);
    now += 1s;
    server.offset += 500us;
  }
  EXPECT_LE(clock.now(now), server.wall(now) + 10ms);
  EXPECT_GE(clock.now(now), server.wall(now) - 2s);
}

}  // namespace
}  // namespace holdfast
