// Which version of the work Lease a warm worker obeys, and when it may echo it.
#include "agent/serve/work_seen.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kD{60};

SteadyTime at(Duration since_start) { return SteadyTime(seconds(1000)) + since_start; }

Work version(std::int64_t seq, bool draining = false) {
  Work work;
  work.seq = seq;
  work.draining = draining;
  return work;
}

TEST(WorkSeen, OnlyANewerVersionIsObeyed) {
  WorkSeen seen;
  EXPECT_TRUE(seen.is_newer(version(0)));
  seen.obeys(at(seconds(0)), version(3));
  EXPECT_FALSE(seen.is_newer(version(3)));
  EXPECT_TRUE(seen.is_newer(version(4)));
}

TEST(WorkSeen, ALateEventOfAnOlderVersionSetsNothingBack) {
  WorkSeen seen;
  seen.obeys(at(seconds(5)), version(3));
  EXPECT_FALSE(seen.is_set_back(version(2), std::nullopt));
  EXPECT_FALSE(seen.is_set_back(version(2), at(seconds(5)))) << "asked for before";
}

TEST(WorkSeen, AnOlderVersionThatWasAskedForLaterIsSetBack) {
  WorkSeen seen;
  seen.obeys(at(seconds(5)), version(3));
  EXPECT_TRUE(seen.is_set_back(version(2), at(seconds(6))));
}

TEST(WorkSeen, ASeqHasOneText) {
  WorkSeen seen;
  seen.obeys(at(seconds(5)), version(3));
  EXPECT_FALSE(seen.is_set_back(version(3), std::nullopt));
  EXPECT_TRUE(seen.is_set_back(version(3, true), std::nullopt));
}

TEST(WorkSeen, AnotherLeaseBeginsWithoutAVersion) {
  WorkSeen seen;
  seen.obeys(at(seconds(5)), version(3));
  seen.begins("work-2");
  EXPECT_EQ(seen.seq(), -1);
  EXPECT_TRUE(seen.is_newer(version(0)));
}

TEST(WorkSeen, AReasonNotToUnderstandIsNewsOnce) {
  WorkSeen seen;
  EXPECT_TRUE(seen.not_understood("no JSON"));
  EXPECT_FALSE(seen.not_understood("no JSON"));
  seen.understood();
  EXPECT_TRUE(seen.not_understood("no JSON"));
}

TEST(WorkSeen, WhatWasReadBeforeTheLastRenewalIsEchoedOnlyWhileItIsYoung) {
  WorkSeen seen;
  EXPECT_FALSE(seen.heard_lately(at(seconds(0)), std::nullopt, kD)) << "nothing was read";
  seen.begins("work-1");
  seen.heard(at(seconds(0)));
  EXPECT_TRUE(seen.heard_lately(at(seconds(1)), at(seconds(0)), kD));
  EXPECT_FALSE(seen.heard_lately(at(seconds(2)), at(seconds(0)), kD));
}

TEST(WorkSeen, WhatWasReadSinceTheLastRenewalIsEchoedForAThirdOfTheDuration) {
  WorkSeen seen;
  seen.begins("work-1");
  seen.heard(at(seconds(1)));
  EXPECT_TRUE(seen.heard_lately(at(seconds(21)), at(seconds(0)), kD));
  EXPECT_FALSE(seen.heard_lately(at(seconds(22)), at(seconds(0)), kD));
  seen.is_gone();
  EXPECT_FALSE(seen.heard_lately(at(seconds(2)), at(seconds(0)), kD));
}

}  // namespace
}  // namespace holdfast::agent
