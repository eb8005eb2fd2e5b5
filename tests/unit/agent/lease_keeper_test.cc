// The rules of one Lease, for whichever agent keeps it. D is 60 s, so that all its parts are whole
// seconds.
#include "agent/base/lease_keeper.h"

#include <array>

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kD{60};

class LeaseKeeperRule : public ::testing::Test {
 protected:
  static SteadyTime at(Duration since_start) { return SteadyTime(seconds(1000)) + since_start; }
  // Sends a request then, and has its answer at once. Returns when it was sent.
  SteadyTime request(Duration when) {
    lease.send(at(when));
    return lease.answered();
  }
  void renew(Duration when) {
    const SteadyTime sent = request(when);
    lease.confirmed();
    lease.acknowledged(sent);
  }
  // When the next request is due, if nothing is to be reported.
  Duration due() const { return lease.due(SteadyTime::max()) - at(seconds(0)); }

  SeededRandom random{7};
  LeaseKeeper lease{kD, random};
};

TEST_F(LeaseKeeperRule, TimesCountFromWhenTheRenewalWasSent) {
  renew(seconds(5));
  EXPECT_EQ(lease.renewed(), at(seconds(5)));
  EXPECT_EQ(lease.terminate_at(), at(seconds(5 + 40))) << "2/3 D";
  EXPECT_EQ(lease.kill_at(), at(seconds(5 + 49))) << "49/60 D";
}

TEST_F(LeaseKeeperRule, AllIsDeadByFiveSixthsOfTheDuration) {
  for (const Duration duration :
       std::array<Duration, 4>{seconds(10), seconds(15), kD, seconds(3600)}) {
    LeaseKeeper keeper(duration, random);
    keeper.acknowledged(at(seconds(0)));
    EXPECT_LT(keeper.terminate_at(), keeper.kill_at());
    EXPECT_LE(keeper.kill_at() + kill_limit(duration) + hurried_words(duration),
              at(duration * 5 / 6));
    // What is refused at the last moment is dead no later.
    EXPECT_LE(keeper.terminate_at() + grace(duration), keeper.kill_at());
  }
}

TEST_F(LeaseKeeperRule, ARequestThatTakesTooLongIsGivenUp) {
  lease.send(at(seconds(0)));
  EXPECT_EQ(lease.late_at(), at(seconds(10))) << "D/6, and 10 s at most";
  EXPECT_EQ(lease.give_up_late(at(milliseconds(9999))), "");
  EXPECT_TRUE(lease.in_progress());
  EXPECT_EQ(lease.give_up_late(at(seconds(10))), "the API server did not answer within 10s");
  EXPECT_FALSE(lease.in_progress()) << "its answer does not count any more";
  EXPECT_EQ(lease.give_up_late(at(seconds(11))), "") << "it is said once";
}

TEST_F(LeaseKeeperRule, GivingUpNothingIsNoAbort) {
  EXPECT_FALSE(lease.give_up());
  lease.send(at(seconds(0)));
  EXPECT_TRUE(lease.give_up());
  EXPECT_FALSE(lease.give_up());
}

TEST_F(LeaseKeeperRule, ARenewalIsDueEachThirdOfTheDurationOrALittleEarlier) {
  renew(seconds(0));
  EXPECT_LE(due(), seconds(20));
  EXPECT_GE(due(), seconds(18));
}

TEST_F(LeaseKeeperRule, WhatIsReportedMayBringARenewalForwardButNeverDelaysIt) {
  renew(seconds(0));
  EXPECT_EQ(lease.due(at(seconds(3))), at(seconds(3)));
  EXPECT_LE(lease.due(at(seconds(50))), at(seconds(20)));
}

TEST_F(LeaseKeeperRule, BeforeTheGrantTheLeaseIsPolledEachSecond) {
  EXPECT_TRUE(lease.failed(request(seconds(0)), "it does not exist"));
  EXPECT_FALSE(lease.may_renew());
  EXPECT_GE(due(), milliseconds(800));
  EXPECT_LE(due(), milliseconds(1200));
}

TEST_F(LeaseKeeperRule, APollForgetsThatTheLeaseWasOurs) {
  request(seconds(0));
  lease.confirmed();
  lease.failed(at(seconds(0)), "503");
  EXPECT_FALSE(lease.may_renew());
}

TEST_F(LeaseKeeperRule, AFailureAfterTheFirstRenewalLeavesTheLeaseOurs) {
  renew(seconds(0));
  lease.failed(at(seconds(20)), "503");
  EXPECT_TRUE(lease.may_renew());
  EXPECT_GE(due(), seconds(20) + milliseconds(900)) << "D/30, and a second at most";
  EXPECT_LE(due(), seconds(20) + milliseconds(1100));
}

TEST_F(LeaseKeeperRule, AReasonIsNewsOnce) {
  EXPECT_TRUE(lease.failed(at(seconds(0)), "it does not exist"));
  EXPECT_FALSE(lease.failed(at(seconds(1)), "it does not exist"));
  EXPECT_TRUE(lease.failed(at(seconds(2)), "503"));
}

TEST_F(LeaseKeeperRule, AfterAConflictTheLeaseIsReadAtOnceAndThenWithPauses) {
  renew(seconds(0));
  lease.conflict(at(seconds(10)));
  EXPECT_FALSE(lease.may_renew()) << "a renewal of what was read before would fail again";
  EXPECT_LE(due(), seconds(10));
  lease.confirmed();
  lease.conflict(at(seconds(11)));
  EXPECT_GE(due(), seconds(11) + milliseconds(900));
}

TEST_F(LeaseKeeperRule, ARenewalEndsTheRowOfConflicts) {
  renew(seconds(0));
  lease.conflict(at(seconds(10)));
  renew(seconds(10));
  lease.conflict(at(seconds(20)));
  EXPECT_LE(due(), seconds(20));
}

TEST_F(LeaseKeeperRule, APauseThatIsAskedForIsKeptButLeavesOneTry) {
  renew(seconds(0));
  lease.failed(at(seconds(20)), "429");
  lease.put_off(at(seconds(20)), seconds(5), at(seconds(30)));
  EXPECT_GE(due(), seconds(25));
  EXPECT_LE(due(), seconds(25) + milliseconds(500))
      << "a tenth more at most, so that not all come at once";
  lease.put_off(at(seconds(20)), seconds(100), at(seconds(30)));
  EXPECT_EQ(due(), seconds(30));
}

TEST_F(LeaseKeeperRule, APauseThatIsAskedForShortensNoOther) {
  renew(seconds(0));
  lease.failed(at(seconds(20)), "429");
  const Duration before = due();
  lease.put_off(at(seconds(20)), milliseconds(1), at(seconds(30)));
  EXPECT_EQ(due(), before);
}

TEST_F(LeaseKeeperRule, ATryMayHaveToComeEarlier) {
  renew(seconds(0));
  lease.failed(at(seconds(20)), "429");
  lease.put_off(at(seconds(20)), seconds(100), at(seconds(30)));
  lease.try_by(at(seconds(22)));
  EXPECT_EQ(due(), seconds(22));
}

TEST_F(LeaseKeeperRule, ARenewalEndsEachPause) {
  renew(seconds(0));
  lease.failed(at(seconds(1)), "429");
  lease.put_off(at(seconds(1)), seconds(100), at(seconds(30)));
  renew(seconds(2));
  EXPECT_LE(due(), seconds(22));
}

TEST_F(LeaseKeeperRule, APostponementMovesTheDeadlinesAndNoRenewal) {
  renew(seconds(0));
  const Duration before = due();
  lease.postpone(at(seconds(15)));
  EXPECT_EQ(lease.terminate_at(), at(seconds(55)));
  EXPECT_EQ(due(), before);
}

TEST_F(LeaseKeeperRule, ASilenceSaysHowLongItIsAndWhy) {
  renew(seconds(0));
  EXPECT_EQ(lease.silence(at(seconds(40))),
            "no renewal was acknowledged for 40s, the Lease is 1m long");
  lease.failed(at(seconds(20)), "503");
  EXPECT_EQ(lease.silence(at(seconds(41))),
            "no renewal was acknowledged for 41s, the Lease is 1m long (503)");
  renew(seconds(42));
  EXPECT_EQ(lease.silence(at(seconds(43))),
            "no renewal was acknowledged for 1s, the Lease is 1m long")
      << "the failure is over";
}

}  // namespace
}  // namespace holdfast::agent
