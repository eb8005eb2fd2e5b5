#include "operator/notify/address_rules.h"

#include <gtest/gtest.h>

namespace holdfast::notify {
namespace {

bool may_connect_to(const std::string& address, const std::vector<std::string>& allowed = {}) {
  std::vector<Range> ranges;
  for (const std::string& text : allowed) ranges.push_back(*parse_range(text));
  return may_connect(*parse_address(address), ranges);
}

TEST(AddressRules, PublicAddressesAreAllowed) {
  for (const char* const address : {"1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "192.169.0.1",
                                    "2606:4700::1111", "::ffff:1.1.1.1"}) {
    EXPECT_TRUE(may_connect_to(address)) << address;
  }
}

TEST(AddressRules, AddressesOfTheHostTheNetworkAndTheCloudAreNot) {
  for (const char* const address : {"127.0.0.1",
                                    "0.0.0.0",
                                    "10.1.2.3",
                                    "172.16.0.1",
                                    "172.31.255.255",
                                    "192.168.1.1",
                                    "169.254.169.254",
                                    "100.100.100.200",
                                    "224.0.0.1",
                                    "255.255.255.255",
                                    "::1",
                                    "::",
                                    "fe80::1",
                                    "fd00:ec2::254",
                                    "ff02::1",
                                    "::ffff:127.0.0.1",
                                    "::ffff:169.254.169.254",
                                    "64:ff9b::a9fe:a9fe",
                                    "2002:a9fe:a9fe::",
                                    "::7f00:1"}) {
    EXPECT_FALSE(may_connect_to(address)) << address;
  }
}

TEST(AddressRules, ATargetMayAllowARange) {
  EXPECT_TRUE(may_connect_to("10.1.2.3", {"10.0.0.0/8"}));
  EXPECT_TRUE(may_connect_to("::ffff:10.1.2.3", {"10.0.0.0/8"}));
  EXPECT_FALSE(may_connect_to("11.0.0.1", {"12.0.0.0/8"}) && may_connect_to("10.0.0.1"));
  EXPECT_FALSE(may_connect_to("127.0.0.1", {"10.0.0.0/8"}));
  EXPECT_TRUE(may_connect_to("fd00::1", {"fd00::/8"}));
  EXPECT_TRUE(may_connect_to("127.0.0.1", {"127.0.0.1/32"}));
  EXPECT_FALSE(may_connect_to("127.0.0.2", {"127.0.0.1/32"}));
}

TEST(AddressRules, WhatIsNoRangeIsRefused) {
  for (const char* const text : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
                                 "fd00::/129", "x/8", "10.0.0.0/8x", "/8"}) {
    EXPECT_FALSE(parse_range(text).ok()) << text;
  }
}

}  // namespace
}  // namespace holdfast::notify
