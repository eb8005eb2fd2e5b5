// When SIGKILL is sent again, and when no more.
#include "agent/base/kill_rounds.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SteadyTime at(Duration since_start) { return SteadyTime(seconds(1000)) + since_start; }

TEST(KillRounds, AreRepeatedEachFiftyMilliseconds) {
  KillRounds rounds;
  rounds.begin_at(at(seconds(9)));
  EXPECT_EQ(rounds.due(), at(seconds(9)));
  EXPECT_FALSE(rounds.began());
  rounds.round(at(seconds(10)));
  EXPECT_EQ(rounds.due(), at(seconds(10) + milliseconds(50)));
  EXPECT_EQ(rounds.began(), at(seconds(10)));
}

TEST(KillRounds, AreLimitedFromTheFirstOn) {
  KillRounds rounds;
  EXPECT_FALSE(rounds.last(at(seconds(100)), seconds(1)));
  rounds.round(at(seconds(10)));
  rounds.round(at(seconds(10) + milliseconds(900)));
  EXPECT_FALSE(rounds.last(at(seconds(10) + milliseconds(999)), seconds(1)));
  EXPECT_TRUE(rounds.last(at(seconds(11)), seconds(1)));
}

TEST(KillRounds, OfWhatAnEndedCommandLeftStartNoLimit) {
  KillRounds rounds;
  rounds.sweep(at(seconds(1)));
  EXPECT_EQ(rounds.due(), at(seconds(1) + milliseconds(50)));
  EXPECT_FALSE(rounds.last(at(seconds(100)), seconds(1)));
}

}  // namespace
}  // namespace holdfast::agent
