// Before the child: whose turn it is, and what starts it.
#include "tests/unit/agent/guard_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Kind = LeaseRefusal::Kind;

class GuardWaitingRule : public GuardTest {};

TEST_F(GuardWaitingRule, ItAsksAboutEverySecondUntilTheLeaseNamesItsPod) {
  make();
  SteadyTime now = at(seconds(0));
  ASSERT_TRUE(guard->begin(now).get);
  const std::vector<LeaseReading> not_yet = {lease(kAttempt - 1), lease(kAttempt, ""),
                                             lease(kAttempt, "job-3-abcde/other")};
  bool jitter = false;
  for (int i = 0; i < 30; ++i) {
    const Orders orders = guard->answered(now, not_yet[static_cast<std::size_t>(i) % 3]);
    EXPECT_FALSE(orders.get || orders.put || orders.start_before || orders.exit_code);
    EXPECT_GE(orders.wake_at - now, milliseconds(800));
    EXPECT_LE(orders.wake_at - now, milliseconds(1200));
    jitter = jitter || orders.wake_at - now != seconds(1);
    now = orders.wake_at;
    EXPECT_FALSE(guard->woke(now - milliseconds(1)).get);
    ASSERT_TRUE(guard->woke(now).get);
  }
  EXPECT_TRUE(jitter);
  EXPECT_TRUE(guard->answered(now, lease()).put);
}

TEST_F(GuardWaitingRule, APauseThatTheApiServerAsksForIsKeptForAThirdOfTheDurationAtMost) {
  for (const auto& [asked, kept] :
       {std::pair(seconds(5), seconds(5)), std::pair(seconds(3600), seconds(20))}) {
    make();
    guard->begin(at(seconds(0)));
    const Orders put_off = guard->answered(at(seconds(0)), try_again_in(asked));
    EXPECT_GE(put_off.wake_at, at(kept));
    EXPECT_LE(put_off.wake_at, at(milliseconds(1100) * kept.count()));
    EXPECT_FALSE(guard->woke(put_off.wake_at - milliseconds(1)).get);
    EXPECT_TRUE(guard->woke(put_off.wake_at).get);
  }
}

TEST_F(GuardWaitingRule, ARenewalOfAnotherLeaseThanWasReadStartsNothing) {
  make();
  guard->begin(at(seconds(0)));
  ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).put);
  EXPECT_FALSE(guard->answered(at(seconds(0)), lease(kAttempt, kHolder, "lease-2")).start_before);
  EXPECT_TRUE(guard->woke(at(seconds(2))).get);
}

TEST_F(GuardWaitingRule, TheChildStartsOnlyAfterAnAcknowledgedRenewal) {
  make();
  guard->begin(at(seconds(0)));
  const Orders found = guard->answered(at(seconds(1)), lease());
  ASSERT_TRUE(found.put);
  EXPECT_EQ(found.put->mark, 0);
  EXPECT_EQ(found.put->age_seconds, 0);
  EXPECT_FALSE(found.start_before);
  const Orders acknowledged = guard->answered(at(seconds(3)), lease());
  ASSERT_TRUE(acknowledged.start_before);
  // Counted from when it was sent, not from when it was answered.
  EXPECT_EQ(*acknowledged.start_before, at(seconds(1) + kTerminate));
  EXPECT_EQ(guard->renewed(), at(seconds(1)));
}

TEST_F(GuardWaitingRule, ARenewalThatWasRefusedOrLostStartsNothingAndIsLookedAtAnew) {
  for (const Kind kind : {Kind::kConflict, Kind::kGone, Kind::kNone}) {
    make();
    guard->begin(at(seconds(0)));
    ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).put);
    Orders orders = guard->answered(at(seconds(1)), answer(kind));
    EXPECT_FALSE(orders.start_before || orders.exit_code);
    if (!orders.get) orders = guard->woke(at(seconds(3)));
    EXPECT_TRUE(orders.get);
    EXPECT_EQ(guard->phase(), Guard::Phase::kWaiting);
  }
}

TEST_F(GuardWaitingRule, AnAnswerThatComesTooLateRenewsNothing) {
  make();
  guard->begin(at(seconds(0)));
  ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).put);
  // The process was stopped meanwhile: the answer is there before the timer was looked at.
  const Orders late = guard->answered(at(kTerminate), lease());
  EXPECT_FALSE(late.start_before);
  EXPECT_EQ(guard->phase(), Guard::Phase::kWaiting);
}

TEST_F(GuardWaitingRule, ALaterAttemptFencesItAtOnce) {
  make();
  guard->begin(at(seconds(0)));
  const Orders orders = guard->answered(at(seconds(0)), lease(kAttempt + 1, ""));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_NE(orders.fenced.find("attempt 4's"), std::string::npos) << orders.fenced;
  EXPECT_EQ(guard->phase(), Guard::Phase::kDone);
}

TEST_F(GuardWaitingRule, TheFenceOfTheApiServerEndsIt) {
  make();
  guard->begin(at(seconds(0)));
  ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).put);
  const Orders orders = guard->answered(at(seconds(0)), answer(Kind::kFenced, "not the holder"));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_EQ(orders.fenced, "not the holder");
}

TEST_F(GuardWaitingRule, EachReasonToWaitIsSaidOnce) {
  make();
  SteadyTime now = at(seconds(0));
  guard->begin(now);
  const auto hears = [&](const LeaseReading& what) {
    const Orders orders = guard->answered(now, what);
    now = orders.wake_at;
    guard->woke(now);
    return orders.say;
  };
  EXPECT_NE(hears(answer(Kind::kGone)), "");
  EXPECT_EQ(hears(answer(Kind::kGone)), "");
  EXPECT_NE(hears(answer(Kind::kNone, "403 forbidden")).find("403 forbidden"), std::string::npos);
  EXPECT_EQ(hears(answer(Kind::kNone, "403 forbidden")), "");
  EXPECT_NE(hears(lease(kAttempt, "")), "");
  EXPECT_NE(hears(answer(Kind::kGone)), "");
}

TEST_F(GuardWaitingRule, AnAnswerIsWaitedForASixthOfTheDuration) {
  make();
  const Orders begun = guard->begin(at(seconds(0)));
  EXPECT_EQ(begun.wake_at, at(seconds(10)));
  EXPECT_FALSE(guard->woke(at(seconds(10)) - milliseconds(1)).abort_request);
  const Orders late = guard->woke(at(seconds(10)));
  EXPECT_TRUE(late.abort_request);
  EXPECT_NE(late.say.find("did not answer within 10s"), std::string::npos) << late.say;
  EXPECT_FALSE(guard->answered(at(seconds(10)), lease()).put);
}

TEST_F(GuardWaitingRule, ASignalThatAsksToEndEndsIt) {
  make();
  guard->begin(at(seconds(0)));
  const Orders orders = guard->asked_to_end(at(seconds(1)));
  // Lost, and no failure of the job's.
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_TRUE(orders.abort_request);
  EXPECT_EQ(orders.fenced, "asked to end before it had the Lease");
}

}  // namespace
}  // namespace holdfast::agent::testing
