// Whose turn it is to take free slots of a pool.
#include "operator/pools/slot_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::pools {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SteadyTime kStart(seconds(100));

Time created(int second) { return Time(seconds(second)); }

class SlotLineTest : public ::testing::Test {
 protected:
  void ask(const std::string& uid, std::int64_t wants = 1) {
    line_.ask(uid, "job-" + uid, created(uid[0]), wants, kStart);
  }
  std::int64_t before(const std::string& uid, std::int64_t limit = 100) {
    return line_.wanted_before(uid, created(uid[0]), limit, kStart);
  }
  SlotLine line_;
};

TEST_F(SlotLineTest, JobsStandInTheOrderOfTheirCreation) {
  ask("c", 4);
  ask("a");
  ask("b", 2);
  EXPECT_EQ(before("a"), 0);
  EXPECT_EQ(before("b"), 1);
  EXPECT_EQ(before("c"), 3);
  EXPECT_EQ(before("c", 2), 2) << "nobody counts further than what is free";
  EXPECT_EQ(before("d"), 7) << "a job that has not asked is behind those that were created earlier";
  EXPECT_EQ(line_.wanted(), 7);
  line_.leave("b");
  EXPECT_EQ(before("c"), 1);
  ask("c", 0);
  EXPECT_EQ(line_.wanted(), 1);
}

TEST_F(SlotLineTest, AsManyAreWokenAsThereAreSlotsAndNoneTwice) {
  ask("a");
  ask("b", 2);
  ask("c");
  EXPECT_THAT(line_.wake(2, kStart), ElementsAre("job-a", "job-b"));
  EXPECT_THAT(line_.wake(2, kStart), IsEmpty());
  EXPECT_THAT(line_.wake(4, kStart), ElementsAre("job-c"));
  line_.looks("a");
  EXPECT_THAT(line_.wake(1, kStart), ElementsAre("job-a")) << "it has looked, and still waits";
}

TEST_F(SlotLineTest, AJobThatDoesNotLookHoldsUpNobodyForLong) {
  ask("a", 50);
  ask("b");
  EXPECT_THAT(line_.wake(1, kStart), ElementsAre("job-a"));
  EXPECT_THAT(line_.wake(1, kStart), IsEmpty());
  const SteadyTime later = kStart + SlotLine::kTurn;
  EXPECT_THAT(line_.wake(1, later), ElementsAre("job-b"));
  EXPECT_EQ(line_.wanted_before("b", created('b'), 9, later), 0);
  line_.looks("a");
  EXPECT_EQ(line_.wanted_before("b", created('b'), 9, later), 9);
}

TEST_F(SlotLineTest, AnOlderJobThatAsksLaterIsWokenBesideThoseThatWere) {
  ask("c");
  ask("d");
  EXPECT_THAT(line_.wake(2, kStart), ElementsAre("job-c", "job-d"));
  ask("a");
  EXPECT_THAT(line_.wake(2, kStart), ElementsAre("job-a"));
  EXPECT_THAT(line_.wake(2, kStart), IsEmpty());
  EXPECT_EQ(before("d"), 2);
  ask("e");
  ask("a", 5);
  EXPECT_EQ(before("e"), 7) << "it wants more by now";
  line_.leave("c");
  EXPECT_EQ(before("e"), 6);
  EXPECT_THAT(line_.wake(7, kStart), ElementsAre("job-e"));
}

TEST_F(SlotLineTest, ItRemembersSinceWhenAJobWaits) {
  ask("a");
  line_.ask("a", "job-a", created('a'), 3, kStart + seconds(9));
  EXPECT_EQ(line_.since("a"), kStart);
  EXPECT_EQ(line_.wants("a"), 3);
  EXPECT_FALSE(line_.since("b"));
}

}  // namespace
}  // namespace holdfast::pools
