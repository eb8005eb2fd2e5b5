// What the silence of a member's Lease means. When its silence counts is staleness_test.cc's.
#include "operator/membership/silence.h"

#include <gtest/gtest.h>

namespace holdfast::membership {
namespace {

using std::chrono::seconds;

constexpr Duration kDuration = seconds(15);

SilentLease silent_lease(std::uint64_t version, Duration silent) {
  auto lease = std::make_shared<CachedLease>();
  lease->version = version;
  lease->duration = kDuration;
  return {lease, silent};
}

TEST(Silence, AMemberIsAliveUntilItWasSilentForTheDurationOfItsLease) {
  EXPECT_TRUE(is_alive(seconds(14), kDuration));
  EXPECT_FALSE(is_alive(seconds(15), kDuration));
}

TEST(Silence, AMemberIsSoonDeadFromHalfOfItsDurationUntilItIsDead) {
  EXPECT_FALSE(is_soon_dead(seconds(7), kDuration, /*has_held=*/true));
  EXPECT_TRUE(is_soon_dead(seconds(8), kDuration, /*has_held=*/true));
  EXPECT_TRUE(is_soon_dead(seconds(14), kDuration, /*has_held=*/true));
  EXPECT_FALSE(is_soon_dead(seconds(15), kDuration, /*has_held=*/true)) << "it is dead";
}

TEST(Silence, AReplicaThatHasNeverHeldAShardAsksFromAThirdOn) {
  EXPECT_FALSE(is_soon_dead(seconds(4), kDuration, /*has_held=*/false));
  EXPECT_TRUE(is_soon_dead(seconds(5), kDuration, /*has_held=*/false));
}

TEST(Silence, AnIdleLeaseIsDeletedAfterTwoOfItsDurations) {
  EXPECT_EQ(lease_to_delete({}), nullptr);
  EXPECT_EQ(lease_to_delete({silent_lease(1, seconds(29))}), nullptr);
  const SilentLease stale = silent_lease(2, seconds(30));
  EXPECT_EQ(lease_to_delete({silent_lease(1, seconds(29)), stale}), stale.lease);
}

TEST(Silence, OfMoreThanSixteenDeadLeasesTheOldestIsDeletedEarlier) {
  std::vector<SilentLease> idle = {silent_lease(1, seconds(14))};
  for (std::uint64_t version = 40; version > 24; --version) {
    idle.push_back(silent_lease(version, seconds(15)));
  }
  EXPECT_EQ(lease_to_delete(idle), nullptr) << "sixteen are dead, one lives";
  idle.push_back(silent_lease(50, seconds(15)));
  ASSERT_NE(lease_to_delete(idle), nullptr);
  EXPECT_EQ(lease_to_delete(idle)->version, 25u);
}

}  // namespace
}  // namespace holdfast::membership
