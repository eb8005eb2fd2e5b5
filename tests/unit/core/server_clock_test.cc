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

TEST(ServerClock, FollowsAServerClockThatIsSteppedForwards) {
  ServerClock clock;
  Server server{1'700'000'000s};
  clock.observe(server.date(kStart), kStart, kStart + 5ms);
  server.offset += 1h;
  const SteadyTime later = kStart + 10s;
  clock.observe(server.date(later), later, later + 5ms);
  const Duration off = server.wall(later) - clock.now(later);
  EXPECT_LE(off, 1s + 10ms);
  EXPECT_GE(off, -5ms);
}

// A server that has just booted, and whose clock NTP has not set yet.
TEST(ServerClock, OneAnswerThatIsHoursAheadMovesNothing) {
  const Server server{1'700'000'000s};
  const Server wrong{server.offset + 8h};
  ServerClock clock;
  SteadyTime at = kStart;
  for (int answer = 0; answer < 600; ++answer) {
    at += 1s;
    const Server& answers = answer % 7 == 3 ? wrong : server;
    clock.observe(answers.date(at), at, at);
    ASSERT_LE(clock.now(at), server.wall(at)) << "answer " << answer;
    ASSERT_GE(clock.now(at), server.wall(at) - 2s) << "answer " << answer;
  }
}

TEST(ServerClock, FollowsAClockThatIsHoursAheadOnceNothingElseAnswers) {
  const Server server{1'700'000'000s};
  const Server stepped{server.offset + 8h};
  ServerClock clock;
  clock.observe(server.date(kStart), kStart, kStart);
  const SteadyTime soon = kStart + ServerClock::kFollowsSoon - 1ms;
  clock.observe(stepped.date(soon), soon, soon);
  EXPECT_LT(clock.now(soon), server.wall(soon) + 1s);
  const SteadyTime later = kStart + ServerClock::kFollowsSoon;
  clock.observe(stepped.date(later), later, later);
  EXPECT_GE(clock.now(later), stepped.wall(later) - 1s);
}

TEST(ServerClock, GoesAtHalfItsPaceUntilItAgreesWithAServerClockThatWasSteppedBack) {
  ServerClock clock;
  Server server{1'700'000'000s};
  SteadyTime now = kStart;
  const auto goes_on = [&](std::chrono::seconds time) {
    for (const SteadyTime end = now + time; now < end; now += 1s) {
      const Time before = clock.now(now);
      clock.observe(server.date(now), now - 2ms, now);
      EXPECT_GE(clock.now(now), before);
      EXPECT_GE(clock.now(now + 1s) - clock.now(now), 499ms);
    }
  };
  clock.observe(server.date(now), now, now);
  server.offset -= 1min;
  goes_on(ServerClock::kFollowsSoon - 1s);
  EXPECT_GE(clock.now(now) - server.wall(now), 58s);
  goes_on(124s);
  EXPECT_LE(clock.now(now), server.wall(now) + 2ms);
  EXPECT_GE(clock.now(now), server.wall(now) - 1s - 2ms);
}

// As a process in a busy virtual machine may.
TEST(ServerClock, FollowsALocalClockThatIsATenthTooFastOrTooSlow) {
  for (const double rate : {0.1, -0.1}) {
    std::mt19937 random(1);
    ServerClock clock;
    Server server{1'700'000'000s};
    SteadyTime now = kStart;
    Duration worst{};
    for (int i = 0; i < 2000; ++i) {
      const Duration step = std::chrono::milliseconds(random() % 2000);
      now += step;
      server.offset -= std::chrono::duration_cast<Duration>(step * rate);
      clock.observe(server.date(now), now - 2ms, now);
      worst = std::max(worst, std::chrono::abs(clock.now(now) - server.wall(now)));
    }
    EXPECT_LE(worst, 2s) << rate;
  }
}

// At rest the few requests all go over one connection.
TEST(ServerClock, OnceAFasterServerIsKnownMinutesWithoutItChangeNothing) {
  const Server fast{1'700'000'000s + 300ms};
  const Server slow{fast.offset - 3s};
  ServerClock clock;
  SteadyTime now = kStart;
  Time last{};
  const auto answers = [&](const Server& server, std::chrono::seconds time) {
    for (const SteadyTime end = now + time; now < end; now += 700ms) {
      clock.observe(server.date(now), now - 2ms, now);
      ASSERT_GE(clock.now(now), last);
      last = clock.now(now);
    }
  };
  answers(slow, 10s);
  answers(fast, 10s);
  const Duration before = clock.now(now) - Time(now.time_since_epoch());
  for (int i = 0; i < 5; ++i) {
    answers(slow, 9min);
    EXPECT_GE(clock.now(now), fast.wall(now) - 1s - 2ms);
    answers(fast, 2s);
  }
  const Duration after = clock.now(now) - Time(now.time_since_epoch());
  EXPECT_LE(std::chrono::abs(after - before), 1s);
  answers(slow, 11min);
  EXPECT_LE(clock.now(now), slow.wall(now) + 2ms) << "the faster one is gone";
}

// Two API servers behind one address; the connections go to either.
TEST(ServerClock, NeverFallsAndItsOffsetStandsStillWhenTwoServersDisagree) {
  for (const Duration apart : {Duration(500ms), Duration(1500ms), Duration(3s), Duration(1h)}) {
    const Server fast{1'700'000'000s + 300ms};
    const Server slow{fast.offset - apart};
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      ServerClock clock;
      SteadyTime now = kStart;
      clock.observe((seed % 2 == 0 ? fast : slow).date(now), now, now);
      Time last = clock.now(now);
      for (int i = 0; i < 2000; ++i) {
        now += std::chrono::milliseconds(random() % 400);
        const Server& server = random() % 3 == 0 ? fast : slow;
        const SteadyTime sent = now - std::chrono::milliseconds(random() % 30);
        const Time before = clock.now(now);
        clock.observe(server.date(now - (now - sent) / 2), sent, now);
        ASSERT_GE(before, last);
        last = clock.now(now);
        ASSERT_GE(last, before) << "an answer made the time fall";
        ASSERT_LE(last, fast.wall(now) + 30ms);
        if (i < 200) continue;
        const Server& followed = apart > ServerClock::kLeap ? slow : fast;
        ASSERT_GE(last, followed.wall(now) - 1s - 30ms) << "it follows the fast one";
      }
    }
  }
}

TEST(ServerClock, AnAnswerThatWasReceivedBeforeTheLastReadingDoesNotMakeItFallEither) {
  std::mt19937 random(1);
  ServerClock clock;
  SteadyTime now = kStart;
  Server server{1'700'000'000s};
  clock.observe(server.date(now), now, now);
  Time last = clock.now(now);
  for (int i = 0; i < 3000; ++i) {
    now += std::chrono::seconds(random() % 30);
    server.offset += std::chrono::milliseconds(static_cast<int>(random() % 4000) - 2000);
    ASSERT_GE(clock.now(now), last);
    last = clock.now(now);
    const SteadyTime received = now - std::chrono::milliseconds(random() % 900);
    clock.observe(server.date(received), received - 1ms, received);
    ASSERT_GE(clock.now(now), last);
    last = clock.now(now);
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
