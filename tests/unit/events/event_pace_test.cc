#include "operator/events/event_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

EventPace::Entry failed(const std::string& note, SteadyTime at = {}) {
  return {true, "AttemptFailed", "Retry", note, 1, at};
}
EventPace::Entry ended(const std::string& reason, SteadyTime at = {}) {
  return {true, reason, "Finish", "the job ends", 1, at};
}
std::string note_of(const std::optional<EventPace::Entry>& entry) {
  return entry ? entry->note : "";
}

constexpr SteadyTime kBegin{seconds(1000)};

TEST(EventPace, TheFirstIsReportedAtOnceAndTheNextASecondLater) {
  EventPace pace(kBegin);
  EXPECT_FALSE(pace.wake());
  pace.add(failed("one"));
  EXPECT_EQ(note_of(pace.take(kBegin)), "one");
  EXPECT_FALSE(pace.take(kBegin));
  EXPECT_FALSE(pace.wake());
  pace.add(failed("two"));
  EXPECT_FALSE(pace.take(kBegin + milliseconds(999)));
  EXPECT_EQ(pace.wake(), kBegin + seconds(1));
  EXPECT_EQ(note_of(pace.take(kBegin + seconds(1))), "two");
}

TEST(EventPace, ThoseThatWaitAreOneAndItSaysHowMany) {
  EventPace pace(kBegin);
  pace.add(failed("one"));
  pace.take(kBegin);
  for (int i = 0; i < 1000; ++i) pace.add(failed("run " + std::to_string(i)));
  EXPECT_EQ(note_of(pace.take(kBegin + seconds(1))), "the last of 1000 such Events: run 999");
  EXPECT_FALSE(pace.take(kBegin + seconds(9)));
  EXPECT_EQ(pace.take_dropped(), 0U);
}

TEST(EventPace, RepeatsKeepTheirNoteAndTheirCount) {
  EventPace pace(kBegin);
  pace.add(failed("one"));
  pace.take(kBegin);
  for (int i = 1; i <= 3; ++i) pace.add(failed("two", kBegin + milliseconds(i)));
  const auto taken = pace.take(kBegin + seconds(1));
  EXPECT_EQ(note_of(taken), "two");
  EXPECT_EQ(taken->count, 3);
  EXPECT_EQ(taken->at, kBegin + milliseconds(3));
}

TEST(EventPace, TheObjectsEndGoesFirstAndHasRoomWhateverCameBefore) {
  EventPace pace(kBegin);
  SteadyTime now = kBegin;
  int taken = 0;
  for (int i = 0; i < 40; ++i, now += seconds(1)) {
    pace.add(failed("run " + std::to_string(i)));
    if (pace.take(now)) ++taken;
  }
  EXPECT_EQ(taken, 25);
  EXPECT_EQ(pace.take_dropped(), 15U);
  pace.add(failed("the last run"));
  pace.add(ended("BackoffLimitExceeded"));
  EXPECT_EQ(note_of(pace.take(now)), "the job ends");
}

TEST(EventPace, TheRoomComesBackInFiveMinutes) {
  EventPace pace(kBegin);
  SteadyTime now = kBegin;
  const auto is_taken = [&] {
    pace.add(failed("again"));
    return pace.take(now).has_value();
  };
  while (is_taken()) now += seconds(1);
  now += minutes(4);
  EXPECT_FALSE(is_taken());
  now += minutes(1);
  EXPECT_TRUE(is_taken());
  now += seconds(1);
  EXPECT_FALSE(is_taken());
}

TEST(EventPace, FewKindsWaitAndTheEndIsAmongThem) {
  EventPace pace(kBegin);
  pace.add(failed("one"));
  pace.take(kBegin);
  pace.add(ended("BackoffLimitExceeded"));
  for (int i = 0; i < 100; ++i) pace.add({true, "Reason" + std::to_string(i), "Retry", "n", 1, {}});
  std::vector<std::string> reasons;
  for (int second = 1; pace.wake(); ++second) {
    if (const auto taken = pace.take(kBegin + seconds(second))) reasons.push_back(taken->reason);
  }
  EXPECT_EQ(reasons.size(), 8U);
  EXPECT_EQ(reasons.front(), "BackoffLimitExceeded");
  EXPECT_EQ(reasons.back(), "Reason99");
  EXPECT_EQ(pace.take_dropped(), 93U);
}

TEST(EventPace, WhoGivesUpReportsHowTheObjectEndsAndCountsTheRest) {
  EventPace pace(kBegin);
  pace.add(failed("one"));
  pace.take(kBegin);
  for (int i = 0; i < 5; ++i) pace.add(failed("run " + std::to_string(i)));
  pace.add(ended("BackoffLimitExceeded"));
  const std::vector<EventPace::Entry> taken = pace.give_up();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].reason, "BackoffLimitExceeded");
  EXPECT_EQ(pace.take_dropped(), 5U);
  EXPECT_FALSE(pace.wake());
  EXPECT_TRUE(pace.give_up().empty());
}

// Whatever comes and whenever somebody takes.
TEST(EventPace, NoSecondHasTwo) {
  EventPace pace(kBegin);
  unsigned random = 7;
  std::optional<SteadyTime> last;
  for (SteadyTime now = kBegin; now < kBegin + minutes(3);) {
    random = random * 1664525U + 1013904223U;
    now += milliseconds(random >> 23U);
    const bool is_end = (random & 7U) == 0;
    const std::string number = std::to_string((random >> 8U) % 5);
    if (is_end) {
      pace.add(ended("Reason" + number));
    } else {
      pace.add(failed(number));
    }
    if (!pace.take(now)) continue;
    if (last) {
      EXPECT_GE(now - *last, seconds(1));
    }
    last = now;
  }
  EXPECT_TRUE(last);
}

}  // namespace
}  // namespace holdfast::events
