#include "operator/runtime/descriptors.h"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast::runtime {
namespace {

TEST(DescriptorsTest, EachNamespaceNeedsTwoConnectionsForEachOfItsSevenWatches) {
  const std::uint64_t one = descriptors_needed({1, 100});
  EXPECT_EQ(descriptors_needed({2, 100}), one + 14);
  EXPECT_EQ(descriptors_needed({500, 100}), one + 499 * 14);
}

TEST(DescriptorsTest, BatchJobsNeedOneWatchOfEachNamespaceAndOneOfNamespaces) {
  EXPECT_EQ(descriptors_needed({3, 100, true}), descriptors_needed({3, 100}) + 2 * (3 + 1));
}

TEST(DescriptorsTest, AllNamespacesTogetherAreWatchedAsOne) {
  EXPECT_EQ(descriptors_needed({0, 100}), descriptors_needed({1, 100}));
}

TEST(DescriptorsTest, EachRequestUnderWayNeedsOneMore) {
  EXPECT_EQ(descriptors_needed({3, 101}), descriptors_needed({3, 100}) + 1);
}

// Beside watches: 64 probes at once, what the process itself holds, and what no namespace owns.
TEST(DescriptorsTest, TheDefaultsFitIntoTheUsualLimit) {
  EXPECT_EQ(descriptors_needed({1, 112}), 64u + 64u + 112u + 6u + 14u);
  EXPECT_LE(descriptors_needed({55, 112}), 1024u);
}

TEST(DescriptorsTest, WhatFitsIsTheOppositeOfWhatIsNeeded) {
  const std::uint64_t needed = descriptors_needed({77, 112});
  EXPECT_EQ(namespaces_within(needed, {0, 112}), 77u);
  EXPECT_EQ(namespaces_within(needed - 1, {0, 112}), 76u);
  EXPECT_EQ(namespaces_within(10, {0, 112}), 0u);
}

TEST(DescriptorsTest, AConnectionThroughATunnelCountsThreeTimes) {
  for (const std::size_t namespaces : {1u, 20u}) {
    const DescriptorUse straight{namespaces, 112, true, 1};
    const DescriptorUse through{namespaces, 112, true, 3};
    const std::uint64_t no_connections = 64 + 64;
    EXPECT_EQ(descriptors_needed(through) - no_connections,
              3 * (descriptors_needed(straight) - no_connections));
    EXPECT_EQ(namespaces_within(descriptors_needed(through), through), namespaces);
  }
}

TEST(DescriptorsTest, ATryThroughAProxyHasATunnelOfItsOwn) {
  const std::uint64_t without = descriptors_needed({1, 112});
  EXPECT_EQ(descriptors_needed({1, 112, false, 1, 32, false}), without + 32 * (4 + 4 * 1));
  EXPECT_EQ(descriptors_needed({1, 112, false, 1, 32, true}), without + 32 * (4 + 4 * 7));
  EXPECT_EQ(descriptors_needed({1, 112, false, 1, 0, true}), without) << "no targets";
}

TEST(DescriptorsTest, TheSoftLimitIsRaisedToWhatIsNeededOrToTheHardOne) {
  constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(soft_limit(3000, 1024, 4096), 3000u);
  EXPECT_EQ(soft_limit(3000, 1024, 2048), 2048u);
  EXPECT_EQ(soft_limit(3000, 1024, kUnlimited), 3000u);
  EXPECT_EQ(soft_limit(300, 1024, 4096), 1024u) << "it is never lowered";
  EXPECT_EQ(soft_limit(300, kUnlimited, kUnlimited), kUnlimited);
}

}  // namespace
}  // namespace holdfast::runtime
