#include "operator/notify/address_memory.h"

#include <gtest/gtest.h>

namespace holdfast::notify {
namespace {

using Addresses = std::vector<std::string>;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr SteadyTime kBegin{seconds(1000)};

TEST(AddressMemory, WhatHasFailedComesLastForTenMinutes) {
  AddressMemory memory;
  const Addresses all{"a", "b", "c"};
  EXPECT_EQ(memory.in_order(all, kBegin), all);
  memory.failed("a", kBegin);
  EXPECT_EQ(memory.in_order(all, kBegin), (Addresses{"b", "c", "a"}));
  memory.failed("b", kBegin + seconds(1));
  EXPECT_EQ(memory.in_order(all, kBegin + seconds(1)), (Addresses{"c", "a", "b"}));
  EXPECT_EQ(memory.in_order(all, kBegin + minutes(10)), (Addresses{"a", "c", "b"}));
}

TEST(AddressMemory, IfAllFailTheyTakeTurns) {
  AddressMemory memory;
  const Addresses all{"a", "b"};
  memory.failed("a", kBegin);
  memory.failed("b", kBegin);
  EXPECT_EQ(memory.in_order(all, kBegin).front(), "a");
  memory.failed("a", kBegin);
  EXPECT_EQ(memory.in_order(all, kBegin).front(), "b");
}

TEST(AddressMemory, WhatWorksAgainIsForgotten) {
  AddressMemory memory;
  memory.failed("a", kBegin);
  memory.worked("a");
  EXPECT_EQ(memory.in_order({"a", "b"}, kBegin), (Addresses{"a", "b"}));
}

TEST(AddressMemory, ItsSizeHasABound) {
  AddressMemory memory;
  for (std::size_t i = 0; i <= AddressMemory::kMost; ++i) {
    memory.failed(std::to_string(i), kBegin);
  }
  EXPECT_EQ(memory.in_order({"0", "x"}, kBegin).front(), "0") << "the oldest failure made room";
  EXPECT_EQ(memory.in_order({"1", "x"}, kBegin).front(), "x");
}

}  // namespace
}  // namespace holdfast::notify
