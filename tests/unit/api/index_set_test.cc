// Sets of indexes, and their text as batch/v1 writes it.
#include "api/index_set.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/reconciler/rng.h"

namespace holdfast::api {
namespace {

constexpr std::int64_t kMost = 99'999;

IndexSet set_of(const std::string& text) { return IndexSet::parse(text, kMost).value(); }

TEST(IndexSet, TextsAreReadAndWrittenAsBatchDoes) {
  for (const char* text : {"", "0", "1,3-5,7", "0-99999", "2,4,6-8"}) {
    EXPECT_EQ(set_of(text).text(), text);
  }
  EXPECT_EQ(set_of("3-4").text(), "3,4") << "two neighbours are no interval";
  EXPECT_EQ(set_of("1,2,3").text(), "1-3");
  EXPECT_EQ(set_of("1,3-5,7").size(), 5);
}

TEST(IndexSet, WhatIsBeyondALimitIsDropped) {
  for (const auto& [limit, kept] : std::vector<std::pair<int, const char*>>{
           {0, ""}, {1, "0"}, {2, "0,1"}, {4, "0-2"}, {5, "0-2,4"}, {9, "0-2,4"}}) {
    IndexSet set = set_of("0-2,4");
    set.keep_below(limit);
    EXPECT_EQ(set.text(), kept);
    EXPECT_EQ(set, set_of(kept)) << "its size counts";
  }
}

TEST(IndexSet, WhatIsNoRisingListIsRefused) {
  for (const char* text :
       {",", "1,", ",1", "1,,2", "2,1", "1,1", "5-3", "1-3,2", "1-", "-1", "1--2", "a", "1 ,2",
        "0x1", "100000", "1-100000", "99999999999999999999", "1.5"}) {
    EXPECT_FALSE(IndexSet::parse(text, kMost)) << text;
  }
}

// The CRD takes them.
TEST(IndexSet, LeadingZerosAreRead) {
  EXPECT_EQ(set_of("01,003-05").text(), "1,3-5");
  EXPECT_EQ(set_of("00").text(), "0");
}

TEST(IndexSet, TheNextIndexIsTheLeastThatIsNotTaken) {
  const IndexSet all = IndexSet::first(6);
  EXPECT_EQ(all.next(0, set_of("")), 0);
  EXPECT_EQ(all.next(0, set_of("0-2,4")), 3);
  EXPECT_EQ(all.next(4, set_of("0-2,4")), 5);
  EXPECT_FALSE(all.next(0, set_of("0-5")));
  EXPECT_FALSE(all.next(6, set_of("")));
  EXPECT_EQ(set_of("2,8-9").next(3, set_of("8")), 9);
  EXPECT_FALSE(IndexSet::first(0).next(0, set_of("")));
}

TEST(IndexSet, ItHasWhatWasAddedWhateverTheOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    reconciler::testing::Rng rng(seed);
    IndexSet set;
    std::set<std::int64_t> expected;
    for (int i = 0; i < 60; ++i) {
      const auto index = static_cast<std::int64_t>(rng.below(40));
      set.add(index);
      expected.insert(index);
      if (rng.below(8) == 0) {
        IndexSet other = IndexSet::first(static_cast<std::int64_t>(rng.below(5)));
        for (std::int64_t j = 0; j < other.size(); ++j) expected.insert(j);
        set.add(other);
      }
    }
    EXPECT_EQ(set.size(), static_cast<std::int64_t>(expected.size()));
    for (std::int64_t index = 0; index < 42; ++index) {
      EXPECT_EQ(set.contains(index), expected.count(index) > 0) << "seed " << seed;
    }
    EXPECT_EQ(IndexSet::parse(set.text(), kMost), set) << set.text();
  }
}

TEST(IndexSet, ASetIncludesAnotherIfItHasEachOfItsIndexes) {
  EXPECT_TRUE(set_of("1-5,7").includes(set_of("2-4,7")));
  EXPECT_TRUE(set_of("1-5,7").includes(set_of("1-5,7")));
  EXPECT_TRUE(set_of("1").includes(set_of("")));
  EXPECT_TRUE(set_of("").includes(set_of("")));
  EXPECT_FALSE(set_of("").includes(set_of("0")));
  EXPECT_FALSE(set_of("1-3,5-9").includes(set_of("2-5"))) << "4 is missing";
  EXPECT_FALSE(set_of("1-9").includes(set_of("0-3"))) << "0 is missing";
  EXPECT_FALSE(set_of("1-9").includes(set_of("8-10"))) << "10 is missing";
}

TEST(IndexSet, CommonIndexesAreCountedFromBothSidesAlike) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    reconciler::testing::Rng rng(seed);
    IndexSet one;
    IndexSet other;
    for (int i = rng.below(30); i > 0; --i) one.add(rng.below(40));
    for (int i = rng.below(30); i > 0; --i) other.add(rng.below(40));
    std::int64_t expected = 0;
    for (std::int64_t index = 0; index < 40; ++index) {
      expected += one.contains(index) && other.contains(index) ? 1 : 0;
    }
    EXPECT_EQ(one.common(other), expected) << one.text() << " and " << other.text();
    EXPECT_EQ(other.common(one), expected) << one.text() << " and " << other.text();
    EXPECT_EQ(one.includes(other), expected == other.size())
        << one.text() << " and " << other.text();
  }
}

// Each of these would take hours if it looked at each index, or at all pairs of intervals.
TEST(IndexSet, CostsGrowWithIntervals) {
  const IndexSet huge = IndexSet::first(IndexSet::kMost);
  EXPECT_EQ(huge.common(huge), huge.size());
  EXPECT_TRUE(huge.includes(huge));
  IndexSet even;
  IndexSet odd;
  for (std::int64_t index = 0; index < 100'000; index += 2) {
    even.add(index);
    odd.add(index + 1);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(even.common(even), 50'000);
    EXPECT_EQ(even.common(odd), 0);
    EXPECT_EQ(even.common(huge), 50'000);
    EXPECT_TRUE(huge.includes(even));
    EXPECT_FALSE(even.includes(odd));
    IndexSet both = even;
    both.add(odd);
    EXPECT_EQ(both, IndexSet::first(100'000));
  }
}

}  // namespace
}  // namespace holdfast::api
