// The newest version of an object, of those that the watch and the answers to our requests show.
#include "operator/pools/newest.h"

#include <gtest/gtest.h>

#include <memory>

namespace holdfast::pools {
namespace {

struct Thing {
  std::uint64_t version = 0;
};

class NewestTest : public ::testing::Test {
 protected:
  bool watch(std::uint64_t version) { return show(version, /*is_own=*/false); }
  bool answer(std::uint64_t version) { return show(version, /*is_own=*/true); }
  std::uint64_t version() const { return newest_ ? newest_->version : 0; }

  Newest<Thing> newest_;

 private:
  bool show(std::uint64_t version, bool is_own) {
    return newest_.show(std::make_shared<Thing>(Thing{version}), is_own);
  }
};

TEST_F(NewestTest, AnAnswerIsNewerThanTheWatchUntilTheWatchHasPassedIt) {
  EXPECT_TRUE(watch(3));
  EXPECT_TRUE(answer(7));
  EXPECT_FALSE(watch(5));
  EXPECT_FALSE(watch(7)) << "it is known";
  EXPECT_EQ(version(), 7u);
  EXPECT_TRUE(watch(8));
}

TEST_F(NewestTest, AnAnswerThatTheWatchHasPassedCountsForNothing) {
  EXPECT_TRUE(watch(9));
  EXPECT_FALSE(answer(7));
  EXPECT_FALSE(answer(9));
  EXPECT_EQ(version(), 9u);
}

TEST_F(NewestTest, TheWatchMayGoBackWhereNoAnswerIsAheadOfIt) {
  EXPECT_TRUE(watch(9));
  EXPECT_TRUE(watch(4)) << "the API server's data was restored";
  EXPECT_TRUE(answer(6));
  EXPECT_FALSE(watch(5));
  newest_.forget_own();
  EXPECT_TRUE(watch(5));
}

TEST_F(NewestTest, AnObjectThatIsGoneMayComeBackWithAnyVersion) {
  EXPECT_TRUE(answer(6));
  newest_.reset();
  EXPECT_FALSE(newest_);
  EXPECT_TRUE(watch(2));
  EXPECT_FALSE(watch(3)) << "our answer is still ahead";
}

}  // namespace
}  // namespace holdfast::pools
