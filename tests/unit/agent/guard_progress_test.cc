// What the renewals carry: the progress, and the child's end.
#include "tests/unit/agent/guard_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Kind = LeaseRefusal::Kind;
using Stop = Orders::Stop;

class GuardProgressRule : public GuardTest {};
class GuardEndRule : public GuardTest {};

TEST_F(GuardProgressRule, EachProgressAddsOneToTheMarkAndStartsTheAgeAnew) {
  start();
  guard->progressed(at(seconds(2)), "one");
  guard->progressed(at(seconds(4)), "two");
  const Orders orders = guard->woke(at(milliseconds(8999)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->mark, 2);
  EXPECT_EQ(orders.put->message, "two");
  EXPECT_EQ(orders.put->age_seconds, 4);
  EXPECT_FALSE(orders.put->ended);
}

TEST_F(GuardProgressRule, ItIsReportedAtOnceWhereTheLastRenewalIsATenthOld) {
  start();
  EXPECT_FALSE(guard->woke(at(seconds(7))).put);
  EXPECT_TRUE(guard->progressed(at(seconds(7)), "").put);
}

TEST_F(GuardProgressRule, ItIsNotReportedMoreOftenThanThat) {
  start();
  const Orders orders = guard->progressed(at(seconds(2)), "");
  EXPECT_FALSE(orders.put);
  EXPECT_EQ(orders.wake_at, at(seconds(6)));
  EXPECT_TRUE(guard->woke(at(seconds(6))).put);
  guard->answered(at(seconds(6)), lease());
  // All is reported: the next one is an ordinary one.
  EXPECT_GE(guard->woke(at(seconds(7))).wake_at, at(seconds(24)));
}

TEST_F(GuardProgressRule, WhatComesWhileARenewalIsUnderWayIsReportedByTheNext) {
  start();
  ASSERT_TRUE(guard->progressed(at(seconds(7)), "one").put);
  EXPECT_FALSE(guard->progressed(at(seconds(8)), "two").put);
  EXPECT_EQ(guard->answered(at(seconds(9)), lease()).wake_at, at(seconds(13)));
  const Orders orders = guard->woke(at(seconds(13)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->mark, 2);
}

TEST_F(GuardProgressRule, ThatTheDeadlineHasPassedIsReportedAtThatMomentAndOnce) {
  start(seconds(65));
  renew(at(seconds(20)));
  renew(at(seconds(40)));
  renew(at(seconds(60)));
  const Orders before = guard->woke(at(seconds(65)) - milliseconds(1));
  EXPECT_FALSE(before.put);
  EXPECT_EQ(before.wake_at, at(seconds(65)));
  const Orders orders = guard->woke(at(seconds(65)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->age_seconds, 65);
  guard->answered(at(seconds(66)), lease());
  EXPECT_GE(guard->woke(at(seconds(67))).wake_at, at(seconds(83)));
}

TEST_F(GuardProgressRule, ADeadlineThatWasNotReportedIsReportedAgain) {
  start(seconds(65));
  for (const int second : {20, 40, 60}) renew(at(seconds(second)));
  ASSERT_TRUE(guard->woke(at(seconds(65))).put);
  guard->answered(at(seconds(65)), answer(Kind::kNone));
  const Orders orders = guard->woke(at(seconds(67)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->age_seconds, 67);
}

TEST_F(GuardProgressRule, ProgressStartsTheDeadlineAnew) {
  start(seconds(65));
  for (const int second : {20, 40, 60}) renew(at(seconds(second)));
  guard->progressed(at(seconds(64)), "");
  EXPECT_TRUE(guard->woke(at(seconds(66))).put);
  guard->answered(at(seconds(66)), lease());
  for (const int second : {86, 106, 126}) renew(at(seconds(second)));
  EXPECT_FALSE(guard->woke(at(seconds(128))).put);
  EXPECT_TRUE(guard->woke(at(seconds(129))).put);
}

TEST_F(GuardEndRule, WhatTheChildLeftIsKilledThenTheEndIsReportedThenItEnds) {
  start();
  const Orders ended = guard->child_ended(at(seconds(5)), 7);
  EXPECT_EQ(ended.stop, Stop::kKill);
  EXPECT_FALSE(ended.put || ended.exit_code);
  const Orders dead = guard->all_dead(at(seconds(6)));
  ASSERT_TRUE(dead.put);
  EXPECT_EQ(dead.put->ended, 7);
  const Orders done = guard->answered(at(seconds(6)), lease());
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.fenced, "");
}

TEST_F(GuardEndRule, ARenewalUnderWayIsWaitedForFirst) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  guard->child_ended(at(seconds(20)), 0);
  EXPECT_FALSE(guard->all_dead(at(seconds(20))).put);
  const Orders next = guard->answered(at(seconds(21)), lease());
  ASSERT_TRUE(next.put);
  EXPECT_EQ(next.put->ended, 0);
  EXPECT_EQ(guard->answered(at(seconds(21)), lease()).exit_code, 0);
}

TEST_F(GuardEndRule, AConflictIsOvercome) {
  start();
  guard->child_ended(at(seconds(5)), 1);
  ASSERT_TRUE(guard->all_dead(at(seconds(5))).put);
  ASSERT_TRUE(guard->answered(at(seconds(5)), answer(Kind::kConflict)).get);
  const Orders again = guard->answered(at(seconds(5)), lease());
  ASSERT_TRUE(again.put);
  EXPECT_EQ(again.put->ended, 1);
  EXPECT_EQ(guard->answered(at(seconds(5)), lease()).exit_code, 1);
}

TEST_F(GuardEndRule, TwoSecondsAreEnough) {
  start();
  guard->child_ended(at(seconds(5)), 1);
  ASSERT_TRUE(guard->all_dead(at(seconds(5))).put);
  EXPECT_FALSE(guard->woke(at(milliseconds(6999))).exit_code);
  EXPECT_EQ(guard->woke(at(seconds(7))).exit_code, 1);
}

TEST_F(GuardEndRule, ALeaseThatIsLostByThenKeepsTheExitCode) {
  for (const LeaseReading& verdict : std::vector<LeaseReading>{
           answer(Kind::kGone), answer(Kind::kFenced), lease(kAttempt, kHolder, "lease-2")}) {
    start();
    guard->child_ended(at(seconds(5)), 9);
    ASSERT_TRUE(guard->all_dead(at(seconds(5))).put);
    const Orders orders = guard->answered(at(seconds(5)), verdict);
    EXPECT_EQ(orders.exit_code, 9);
    EXPECT_EQ(orders.fenced, "");
  }
}

TEST_F(GuardEndRule, ALeaseThatIsLostBeforeAllAreDeadIsSentNothing) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  guard->child_ended(at(seconds(20)), 9);
  EXPECT_FALSE(guard->answered(at(seconds(20)), answer(Kind::kGone)).exit_code);
  EXPECT_EQ(guard->all_dead(at(seconds(21))).exit_code, 9);
}

TEST_F(GuardEndRule, WhatCannotBeKilledIsKilledAgainThenTheEndIsReportedAllTheSame) {
  start();
  SteadyTime now = at(seconds(5));
  Orders orders = guard->child_ended(now, 4);
  int kills = 0;
  for (int i = 0; i < 100 && !orders.put; ++i, orders = guard->woke(now)) {
    EXPECT_FALSE(orders.get || orders.exit_code);
    if (orders.stop == Stop::kKill) ++kills;
    now = orders.wake_at;
  }
  EXPECT_GE(kills, 4);
  EXPECT_EQ(now, at(seconds(5)) + milliseconds(200));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->ended, 4);
  EXPECT_FALSE(guard->all_dead(now).put) << "once is enough";
  const Orders done = guard->answered(now, lease());
  EXPECT_EQ(done.exit_code, 4);
  EXPECT_EQ(done.fenced, "");
}

TEST_F(GuardEndRule, WhatCannotBeKilledIsNotLeftToRunBeyondTheLeaseForTheLastRenewal) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  guard->answered(at(seconds(20)), answer(Kind::kNone));
  guard->child_ended(at(milliseconds(39900)), 4);
  // The agent was stopped for so long.
  ASSERT_TRUE(guard->woke(at(kKill) - milliseconds(1)).put);
  EXPECT_EQ(guard->woke(at(kKill)).exit_code, 4);
}

class GuardCheckpointRule : public GuardTest {};

TEST_F(GuardCheckpointRule, ItIsReportedWithinASecondOfTheLastRenewalAndItsAcknowledgementIsSaid) {
  start();
  Orders orders = guard->checkpointed(at(milliseconds(200)), 1, "page 7");
  EXPECT_FALSE(orders.put) << "not more often than each second";
  EXPECT_EQ(orders.wake_at, at(seconds(1)));
  orders = guard->woke(at(seconds(1)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->checkpoint, "page 7");
  EXPECT_FALSE(orders.kept);
  EXPECT_EQ(guard->answered(at(seconds(2)), lease()).kept, 1);
  // All is reported, and the Lease keeps it by itself.
  EXPECT_GE(guard->woke(at(seconds(3))).wake_at, at(seconds(19)));
}

TEST_F(GuardCheckpointRule, AnAnswerThatIsNoneKeepsNothing) {
  start();
  ASSERT_TRUE(guard->checkpointed(at(seconds(2)), 1, "a").put);
  EXPECT_FALSE(guard->answered(at(seconds(3)), answer(Kind::kNone)).kept);
  const Orders again = guard->woke(at(seconds(6)));
  ASSERT_TRUE(again.put);
  EXPECT_EQ(again.put->checkpoint, "a");
}

TEST_F(GuardCheckpointRule, OneThatComesWhileARenewalIsUnderWayIsNotAcknowledgedByIt) {
  start();
  ASSERT_TRUE(guard->checkpointed(at(seconds(2)), 1, "a").put);
  EXPECT_FALSE(guard->checkpointed(at(seconds(3)), 2, "b").put);
  const Orders next = guard->answered(at(seconds(4)), lease());
  EXPECT_EQ(next.kept, 1);
  ASSERT_TRUE(next.put);
  EXPECT_EQ(next.put->checkpoint, "b");
}

TEST_F(GuardCheckpointRule, TheLastRenewalCarriesOneThatWasNotReportedYet) {
  start();
  guard->checkpointed(at(milliseconds(100)), 1, "done");
  guard->child_ended(at(milliseconds(200)), 3);
  const Orders orders = guard->all_dead(at(milliseconds(300)));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->checkpoint, "done");
  EXPECT_EQ(orders.put->ended, 3);
}

TEST_F(GuardCheckpointRule, AFencedChildsIsNotReported) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  guard->answered(at(seconds(20)), answer(Kind::kFenced));
  ASSERT_EQ(guard->phase(), Guard::Phase::kFencing);
  EXPECT_FALSE(guard->checkpointed(at(seconds(21)), 1, "late").put);
}

}  // namespace
}  // namespace holdfast::agent::testing
