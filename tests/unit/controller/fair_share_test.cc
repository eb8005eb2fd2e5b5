#include "client/controller/fair_share.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::controller {
namespace {

int fill(FairShare& share, const std::string& tenant) {
  int slots = 0;
  for (; share.admits(tenant); ++slots) share.begin(tenant);
  return slots;
}

TEST(FairShare, EachTenantThatFillsUpGetsHalfOfWhatIsFreeAndTheSeventhWaits) {
  FairShare share(16);
  std::vector<int> slots;
  for (const char* tenant : {"a", "b", "c", "d", "e", "f", "g"}) {
    slots.push_back(fill(share, tenant));
  }
  EXPECT_EQ(slots, (std::vector<int>{16, 8, 4, 2, 1, 1, 0}));
  share.end("a");
  EXPECT_FALSE(share.admits("a")) << "the one that has most is not the first to get it";
  EXPECT_TRUE(share.admits("g"));
}

}  // namespace
}  // namespace holdfast::controller
