// Which worker gets the next attempt.
#include "reconciler/pool/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace holdfast::reconciler {
namespace {

std::string worker(int number) { return "worker-" + std::to_string(number); }

SlotPlacement pool(int workers, int slots, int used = 0) {
  SlotPlacement placement;
  for (int i = 0; i < workers; ++i) placement.add(worker(i), slots, used);
  return placement;
}

TEST(Placement, WithoutAFreeSlotThereIsNoPlace) {
  SlotPlacement none;
  EXPECT_FALSE(none.place("job"));
  SlotPlacement full = pool(3, 2, 2);
  EXPECT_EQ(full.free(), 0);
  EXPECT_FALSE(full.place("job"));
  full.add("over", 1, 4);
  EXPECT_FALSE(full.place("job")) << "a pool whose slots were lowered";
}

TEST(Placement, EverySlotIsUsedBeforeAJobWaits) {
  SlotPlacement placement = pool(5, 3);
  EXPECT_EQ(placement.free(), 15);
  std::map<std::string, int> load;
  for (int i = 0; i < 15; ++i) {
    const auto place = placement.place("the same key");
    ASSERT_TRUE(place);
    ++load[*place];
  }
  for (const auto& [uid, used] : load) EXPECT_EQ(used, 3) << uid;
  EXPECT_FALSE(placement.place("the same key"));
}

TEST(Placement, TheSameKeyGoesToTheSameWorkerWhateverTheOrder) {
  SlotPlacement one;
  SlotPlacement other;
  for (int i = 0; i < 20; ++i) one.add(worker(i), 16, 4);
  for (int i = 19; i >= 0; --i) other.add(worker(i), 16, 4);
  EXPECT_EQ(one.place("customer-7"), other.place("customer-7"));
}

TEST(Placement, AWorkerThatGoesMovesOnlyItsOwnKeys) {
  int moved = 0;
  for (int key = 0; key < 400; ++key) {
    const std::string name = "key-" + std::to_string(key);
    const std::string before = *pool(8, 16).place(name);
    const std::string after = *pool(7, 16).place(name);
    EXPECT_TRUE(before == worker(7) || before == after) << name;
    moved += before != after;
  }
  EXPECT_GT(moved, 400 / 16);
  EXPECT_LT(moved, 400 / 4);
}

// However uneven the keys are.
TEST(Placement, NoWorkerHasMoreThanAQuarterAboveTheMean) {
  SlotPlacement placement = pool(8, 16);
  std::map<std::string, int> load;
  for (int placed = 1; placed <= 128; ++placed) {
    const auto place = placement.place(placed % 10 ? "popular" : "key-" + std::to_string(placed));
    ASSERT_TRUE(place);
    const int used = ++load[*place];
    const int bound = (5 * placed + 31) / 32;  // 1.25 * placed / 8, rounded up
    EXPECT_LE(used, std::max(bound, 1)) << placed;
  }
}

TEST(Placement, AFullWorkerBelowTheBoundStopsNobody) {
  SlotPlacement placement;
  placement.add("small", 1, 1);
  placement.add("large", 16, 10);
  EXPECT_EQ(placement.place("job"), "large");
}

}  // namespace
}  // namespace holdfast::reconciler
