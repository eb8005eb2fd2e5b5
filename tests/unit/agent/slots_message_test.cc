// A job's message on its way to the command, and starts that come too late.
#include "tests/unit/agent/slots_fixture.h"

namespace holdfast::agent::testing {
namespace {

using JobKind = JobReading::Kind;

WorkEntry notified(const AttemptId& id, std::int64_t message) {
  return {id, "name", false, message};
}

class SlotsMessageRule : public SlotsTest {};

TEST_F(SlotsMessageRule, AChangedMessageIsReadOnceForACommandThatRuns) {
  serve();
  begin({notified(kA, 1)}, kA);
  EXPECT_TRUE(watch({notified(kA, 1)}).messages.empty()) << "the look has read it";
  const SlotOrders orders = watch({notified(kA, 2)});
  EXPECT_EQ(only(orders.messages).id, kA);
  EXPECT_TRUE(watch({notified(kA, 2)}).messages.empty()) << "in progress";
  EXPECT_TRUE(slots->message_read(now, kA, job(JobKind::kCurrent)).messages.empty());
}

TEST_F(SlotsMessageRule, AChangeDuringTheReadIsReadAgain) {
  run_a();
  ASSERT_EQ(watch({notified(kA, 1)}).messages.size(), 1U);
  EXPECT_TRUE(watch({notified(kA, 2)}).messages.empty());
  EXPECT_EQ(slots->message_read(now, kA, job(JobKind::kCurrent)).messages.size(), 1U);
}

TEST_F(SlotsMessageRule, AReadWithoutAnAnswerIsRepeatedAfterAPause) {
  run_a();
  ASSERT_EQ(watch({notified(kA, 1)}).messages.size(), 1U);
  SlotOrders orders = slots->message_read(now, kA, job(JobKind::kNone));
  EXPECT_TRUE(orders.messages.empty());
  now += seconds(3);
  EXPECT_EQ(slots->woke(now).messages.size(), 1U);
  now += seconds(10);
  orders = slots->woke(now);
  EXPECT_EQ(orders.abort_looks, std::vector<AttemptId>{kA}) << "it did not answer";
}

TEST_F(SlotsMessageRule, WhatIsToStopGetsNoMessage) {
  run_a();
  EXPECT_TRUE(watch({{kA, "name", true, 5}}).messages.empty());
}

TEST_F(SlotsMessageRule, AStartThatWasMissedIsLookedAtAgainAndIsNoEnd) {
  serve(1);
  begin({run(kA)}, kA);
  SlotOrders orders = slots->happened(now, 0, Missed{});
  EXPECT_TRUE(orders.looks.empty()) << "a start that fails again and again costs few looks";
  EXPECT_LE(orders.wake_at, now + seconds(4));
  now = orders.wake_at;
  orders = slots->woke(now);
  EXPECT_EQ(only(orders.looks).id, kA);
  EXPECT_EQ(answer_to(next_put({run(kA)}), kA), nullptr);
  EXPECT_EQ(current(kA).starts.size(), 1U);
}

TEST_F(SlotsMessageRule, AMissedStartThatWasToStopIsStopped) {
  run_a();
  watch({stop(kA)});
  slots->happened(now, 0, Missed{});
  const SlotOrders orders = slots->happened(now, 0, AllDead{});
  const WorkerReport report = put_of(orders, {stop(kA)});
  ASSERT_NE(answer_to(report, kA), nullptr);
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kStopped);
}

TEST_F(SlotsMessageRule, AMissedStartOfAWorkerThatDrainsIsHandedBack) {
  run_a();
  slots->asked_to_end(now);
  const SlotOrders orders = slots->happened(now, 0, Missed{});
  const WorkerReport report = put_of(orders, {run(kA)});
  ASSERT_NE(answer_to(report, kA), nullptr);
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kReturned);
}

}  // namespace
}  // namespace holdfast::agent::testing
