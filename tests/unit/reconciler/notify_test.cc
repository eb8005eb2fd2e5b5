// When a message that a target did not take is sent again, and for how long.
#include "reconciler/notify.h"

#include <gtest/gtest.h>

namespace holdfast::reconciler {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr double kLeast = 0;
constexpr double kMiddle = 0.5;
constexpr double kMost = 1;

Duration pause(Duration age, double draw = kMiddle) {
  return next_notify_pause(age, draw, std::nullopt);
}

TEST(NotifyPause, TheFirstIsFiveSeconds) {
  EXPECT_EQ(pause(seconds(0)), seconds(5));
  EXPECT_EQ(pause(seconds(0), kLeast), seconds(5));
  EXPECT_EQ(pause(seconds(0), kMost), seconds(6));
}

// Clocks differ: the event may seem to come from the future.
TEST(NotifyPause, AnEventOfTheFutureIsAFreshOne) { EXPECT_EQ(pause(hours(-1)), seconds(5)); }

TEST(NotifyPause, ItIsAsLongAsTheEventIsOldAndSoEachDoubles) {
  EXPECT_EQ(pause(seconds(7)), seconds(7));
  EXPECT_EQ(pause(hours(1)), hours(1));
  Duration age = seconds(5);
  for (int number = 0; number < 10; ++number) {
    EXPECT_EQ(age + pause(age), 2 * age);
    age += pause(age);
  }
}

TEST(NotifyPause, ItIsSpreadByTwentyPercentEachWay) {
  EXPECT_EQ(pause(minutes(10), kLeast), minutes(8));
  EXPECT_EQ(pause(minutes(10), kMost), minutes(12));
}

TEST(NotifyPause, TheLongestIsSixHours) {
  EXPECT_EQ(pause(hours(6), kMost), hours(6));
  EXPECT_EQ(pause(hours(70)), hours(6));
  EXPECT_EQ(pause(hours(70), kLeast), hours(6) - minutes(72));
}

TEST(NotifyPause, ItIsNoShorterThanTheTargetAsks) {
  EXPECT_EQ(next_notify_pause(seconds(10), kMiddle, minutes(3)), minutes(3));
  EXPECT_EQ(next_notify_pause(seconds(10), kMiddle, seconds(2)), seconds(10));
}

TEST(NotifyPause, ATargetThatAsksForMoreThanSixHoursGetsSix) {
  EXPECT_EQ(obeyed_pause(hours(200)), hours(6));
  EXPECT_EQ(obeyed_pause(minutes(3)), minutes(3));
}

TEST(NotifyPause, AFailingTargetIsGivenUpAfterThreeDays) {
  EXPECT_FALSE(notifies_no_longer(hours(72) - milliseconds(1)));
  EXPECT_TRUE(notifies_no_longer(hours(72)));
}

TEST(NotifyPause, ThreeDaysHaveThirtySixTriesAtMost) {
  int tries = 1;
  for (Duration age{}; !notifies_no_longer(age); age += pause(age, kLeast)) ++tries;
  EXPECT_LE(tries, 36);
}

}  // namespace
}  // namespace holdfast::reconciler
