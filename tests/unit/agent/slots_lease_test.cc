// When the agent of a warm worker renews its Lease, and what ends it.
#include "tests/unit/agent/slots_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Kind = LeaseRefusal::Kind;

class SlotsLeaseRule : public SlotsTest {
 protected:
  // Commands have longer than any fence allows them.
  SlotsLeaseRule() { usual_stop_grace = seconds(60); }
  // Everything dies in time after a verdict that comes at `when`.
  void expect_fence(const SlotOrders& orders, SteadyTime when) {
    EXPECT_EQ(slots->phase(), Slots::Phase::kFencing);
    EXPECT_EQ(orders.terminate, std::vector<int>{0});
    EXPECT_FALSE(orders.put || orders.get_work || orders.get_worker);
    EXPECT_LE(orders.wake_at, when + kLeaseDuration / 6);
    now = orders.wake_at;
    EXPECT_TRUE(slots->woke(now).kill_everything);
    EXPECT_TRUE(watch({run(kA), run(kB)}).looks.empty());
    slots->happened(now, 0, Ended{0, ""});
    const SlotOrders dead = slots->happened(now, 0, AllDead{});
    EXPECT_EQ(dead.exit_code, kFencedExitCode);
    EXPECT_FALSE(dead.fenced.empty());
    EXPECT_FALSE(dead.put);
  }
};

// -- the start ---------------------------------------------------------------------------------

TEST_F(SlotsLeaseRule, AFenceLeavesACommandNoMoreThanItsOwnGrace) {
  serve(2, seconds(3), seconds(30));
  begin({run(kA)}, kA);
  EXPECT_EQ(slots->watched(now, no_lease(Kind::kGone)).terminate, std::vector<int>{0});
  now += seconds(3);
  EXPECT_EQ(slots->woke(now).kill, std::vector<int>{0});
}

TEST_F(SlotsLeaseRule, ItMarksTheLeaseBeforeItServes) {
  make();
  ASSERT_TRUE(slots->begin(now).get_worker);
  ASSERT_TRUE(slots->worker_answered(now, worker_lease()).get_work);
  const SlotOrders first = slots->work_answered(now, work_lease(5, {run(kA)}));
  ASSERT_TRUE(first.put);
  EXPECT_TRUE(first.looks.empty()) << "nothing before the renewal";
  EXPECT_EQ(first.put->life, kLife);
  EXPECT_EQ(first.put->work_uid, "work-1");
  EXPECT_EQ(first.put->seq, 5);
  EXPECT_EQ(slots->worker_answered(now, worker_lease(*first.put)).looks.size(), 1U);
}

TEST_F(SlotsLeaseRule, ARestartedContainerNeverServes) {
  make();
  slots->begin(now);
  const SlotOrders orders = slots->worker_answered(now, worker_lease(marked("life-0")));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_EQ(orders.fenced, "the container was restarted");
}

TEST_F(SlotsLeaseRule, AMarkThatIsNotUnderstoodIsAnothers) {
  make();
  slots->begin(now);
  WorkerView reading = worker_lease();
  reading.report = invalid("no JSON");
  EXPECT_EQ(slots->worker_answered(now, reading).exit_code, kFencedExitCode);
}

TEST_F(SlotsLeaseRule, AMarkThatCameFirstWins) {
  make();
  slots->begin(now);
  slots->worker_answered(now, worker_lease());
  ASSERT_TRUE(slots->work_answered(now, work_lease(0, {})).put);
  ASSERT_TRUE(slots->worker_answered(now, no_lease(Kind::kConflict)).get_worker);
  EXPECT_EQ(slots->worker_answered(now, worker_lease(marked("life-0"))).exit_code, kFencedExitCode);
}

TEST_F(SlotsLeaseRule, ItsOwnMarkThatWasNeverAcknowledgedIsItsOwn) {
  make();
  slots->begin(now);
  slots->worker_answered(now, worker_lease());
  ASSERT_TRUE(slots->work_answered(now, work_lease(0, {})).put);
  const SlotOrders lost = slots->worker_answered(now, no_lease(Kind::kNone));
  now = lost.wake_at;
  ASSERT_TRUE(slots->woke(now).get_worker);
  EXPECT_TRUE(slots->worker_answered(now, worker_lease(marked(kLife))).put);
}

TEST_F(SlotsLeaseRule, AWorkerThatWasCutOffNeverServes) {
  make();
  slots->begin(now);
  EXPECT_EQ(slots->worker_answered(now, worker_lease({}, "")).exit_code, kFencedExitCode);
}

TEST_F(SlotsLeaseRule, ItWaitsForItsLeases) {
  make();
  slots->begin(now);
  SlotOrders orders = slots->worker_answered(now, no_lease(Kind::kGone));
  EXPECT_FALSE(orders.exit_code);
  EXPECT_GE(orders.wake_at, now + milliseconds(800));
  now = orders.wake_at;
  ASSERT_TRUE(slots->woke(now).get_worker);
  ASSERT_TRUE(slots->worker_answered(now, worker_lease()).get_work);
  orders = slots->work_answered(now, no_lease(Kind::kGone));
  EXPECT_FALSE(orders.exit_code);
  EXPECT_FALSE(orders.put) << "it would mark a Lease without knowing the other";
  EXPECT_EQ(slots->asked_to_end(now).exit_code, 0) << "nobody counts on it";
}

TEST_F(SlotsLeaseRule, AWorkLeaseThatIsMadeAgainCountsOnlyBeforeTheFirstRenewal) {
  make();
  slots->begin(now);
  slots->watched(now, work_lease(7, {run(kB)}, "work-0"));
  slots->watched(now, no_lease(Kind::kGone));
  slots->watched(now, work_lease(1, {run(kA)}, "work-1"));
  const WorkerReport first = put_of(slots->worker_answered(now, worker_lease()), {});
  EXPECT_EQ(first.work_uid, "work-1");
  EXPECT_EQ(first.seq, 1);
  const SlotOrders serving = acknowledge(first);
  EXPECT_EQ(only(serving.looks).id, kA);
}

// -- renewals ----------------------------------------------------------------------------------

TEST_F(SlotsLeaseRule, ItRenewsEachThirdOfTheDurationLessUpToATenthOfThat) {
  serve();
  for (int i = 0; i < 50; ++i) {
    const SteadyTime last = now;
    const WorkerReport report = next_put({});
    EXPECT_GE(now - last, seconds(18));
    EXPECT_LE(now - last, seconds(20));
    acknowledge(report);
    EXPECT_EQ(slots->renewed(), now);
  }
}

TEST_F(SlotsLeaseRule, IfTheWatchWasQuietTheWorkLeaseIsReadFirst) {
  serve();
  now = slots->woke(now).wake_at;
  ASSERT_TRUE(slots->woke(now).get_work);
  const SlotOrders orders = slots->work_answered(now, work_lease(9, {stop(kA)}));
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->seq, 9);
  EXPECT_EQ(answer_to(*orders.put, kA)->kind, AnswerKind::kReturned);
}

TEST_F(SlotsLeaseRule, IfTheWatchHasSpokenSinceTheLastRenewalNothingIsRead) {
  serve();
  now += seconds(5);
  begin({run(kA)}, kA);
  now = slots->woke(now).wake_at;
  const SlotOrders orders = slots->woke(now);
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(orders.put->seq, 1);
}

TEST_F(SlotsLeaseRule, AWatchThatRepeatsItselfIsQuiet) {
  run_a();
  acknowledge(next_put({run(kA)}));
  now += seconds(5);
  slots->watched(now, work_lease(seq, {run(kA)}));
  now = slots->woke(now).wake_at;
  EXPECT_TRUE(slots->woke(now).get_work);
}

TEST_F(SlotsLeaseRule, WithoutTheReadThereIsNoRenewal) {
  run_a();
  acknowledge(next_put({run(kA)}));
  const SteadyTime renewed = now;
  for (SlotOrders orders = slots->woke(now); orders.terminate.empty();) {
    ASSERT_FALSE(orders.put);
    ASSERT_GT(orders.wake_at, now);
    now = orders.wake_at;
    orders = slots->woke(now);
    if (orders.get_work) orders = slots->work_answered(now, no_lease(Kind::kNone));
  }
  EXPECT_EQ(now, renewed + kTwoThirds);
}

TEST_F(SlotsLeaseRule, NewsIsCollectedWhileARenewalIsUnderWay) {
  run_a_and_b();
  now += milliseconds(25);
  const SlotOrders first = end(0);
  ASSERT_TRUE(first.put) << "at once; the watch has just spoken";
  const SlotOrders second = end(1);
  EXPECT_FALSE(second.put || second.get_work) << "one renewal at a time";
  now += milliseconds(3);
  const SlotOrders waits = acknowledge(*first.put);
  EXPECT_FALSE(waits.put) << "more may come, and share the next one";
  EXPECT_EQ(waits.wake_at, now + milliseconds(22));
  now = waits.wake_at;
  const SlotOrders next = slots->woke(now);
  ASSERT_TRUE(next.put) << "and no read in between: the watch spoke within the last second";
  EXPECT_EQ(answer_to(*next.put, kB)->kind, AnswerKind::kEnded);
  const SlotOrders quiet = acknowledge(*next.put);
  EXPECT_FALSE(quiet.put || quiet.get_work);
}

TEST_F(SlotsLeaseRule, ANewsWhoseRenewalFailedIsSentAgain) {
  run_a();
  ASSERT_TRUE(end(0).put);
  const SlotOrders failed = slots->worker_answered(now, no_lease(Kind::kNone));
  EXPECT_FALSE(failed.put);
  EXPECT_LE(failed.wake_at, now + milliseconds(1100));
  const WorkerReport report = put_of(failed, {run(kA)});
  EXPECT_EQ(now, failed.wake_at);
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kEnded);
}

TEST_F(SlotsLeaseRule, AnAnswerInTheLeaseIsRecordedEvenIfItsRenewalWasNeverAcknowledged) {
  run_a();
  slots->happened(now, 0, Checkpointed{1, "page 7"});
  const WorkerReport report = next_put({run(kA)});
  ASSERT_TRUE(slots->worker_answered(now, no_lease(Kind::kConflict)).get_worker);
  const SlotOrders read = slots->worker_answered(now, worker_lease(report));
  EXPECT_EQ(read.kept.size(), 1U);
  EXPECT_NE(slots->renewed(), now) << "but it is no renewal";
}

TEST_F(SlotsLeaseRule, APauseThatTheApiServerAsksForLeavesOneTry) {
  run_a();
  next_put({run(kA)});
  LeaseRefusal throttled = no_lease(Kind::kNone);
  throttled.retry_after = seconds(3600);
  EXPECT_EQ(slots->worker_answered(now, throttled).wake_at, at(kTwoThirds) - seconds(10));
}

TEST_F(SlotsLeaseRule, AnOlderVersionOfTheWorkLeaseChangesNothing) {
  serve();
  seq = 4;
  begin({run(kA)}, kA);
  const SlotOrders old = slots->watched(now, work_lease(4, {}));
  EXPECT_TRUE(old.kill.empty());
  EXPECT_EQ(next_put({run(kA)}).seq, 5);
}

TEST_F(SlotsLeaseRule, AVersionThatIsNotUnderstoodChangesNothingAndIsNotEchoed) {
  run_a();
  WorkView strange = work_lease(9, {});
  strange.work = invalid("too many attempts");
  const SlotOrders orders = slots->watched(now, strange);
  EXPECT_TRUE(orders.kill.empty());
  EXPECT_EQ(orders.say.size(), 1U);
  EXPECT_TRUE(slots->watched(now, strange).say.empty());
  EXPECT_EQ(next_put({run(kA)}).seq, 1);
}

// -- fences ------------------------------------------------------------------------------------

TEST_F(SlotsLeaseRule, WithoutARenewalItAsksAtTwoThirdsAndKillsBeforeFiveSixths) {
  run_a();
  now = at(kTwoThirds) - milliseconds(1);
  EXPECT_TRUE(slots->woke(now).terminate.empty());
  now = at(kTwoThirds);
  EXPECT_EQ(slots->deadlines(now).terminate, std::vector<int>{0});
  EXPECT_EQ(slots->woke(now).wake_at, at(kKillTime));
  now = at(kKillTime);
  const SlotOrders killed = slots->woke(now);
  EXPECT_TRUE(killed.kill_everything);
  EXPECT_EQ(end(0, 0, "a result").exit_code, kFencedExitCode);
}

TEST_F(SlotsLeaseRule, AFencedAgentEndsEvenIfNothingDies) {
  run_a();
  now = at(kTwoThirds);
  SlotOrders orders = slots->woke(now);
  while (!orders.exit_code) {
    ASSERT_GT(orders.wake_at, now);
    now = orders.wake_at;
    orders = slots->woke(now);
  }
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_TRUE(orders.kill_everything);
  EXPECT_LE(now + orders.last_words, at(kFiveSixths));
}

TEST_F(SlotsLeaseRule, ThatItMustFenceIsDecidedByTheLastAcknowledgedSending) {
  run_a();
  const WorkerReport report = next_put({run(kA)});
  const SteadyTime sent = now;
  now += seconds(9);
  acknowledge(report);
  now = sent + kTwoThirds - milliseconds(1);
  EXPECT_TRUE(slots->woke(now).terminate.empty());
  now = sent + kTwoThirds;
  EXPECT_EQ(slots->woke(now).terminate.size(), 1U);
}

TEST_F(SlotsLeaseRule, AnIdleWorkerOutlivesAnOutageButBeginsNothingBeforeItRenews) {
  serve();
  now = at(seconds(3600));
  EXPECT_FALSE(slots->woke(now).exit_code);
  EXPECT_TRUE(watch({run(kA)}).looks.empty());
  const WorkerReport report = next_put({run(kA)});
  const SlotOrders orders = acknowledge(report);
  EXPECT_EQ(orders.looks.size(), 1U);
  EXPECT_EQ(current(kA).starts[0].before, now + kTwoThirds);
}

TEST_F(SlotsLeaseRule, ALookThatTheRenewalDidNotLastForIsRepeated) {
  serve();
  now = at(kTwoThirds) - seconds(1);
  const SlotOrders seen = watch({run(kA)});
  ASSERT_EQ(seen.looks.size(), 1U);
  ASSERT_TRUE(seen.put);
  now = at(kTwoThirds);
  EXPECT_TRUE(current(kA).starts.empty());
  EXPECT_EQ(acknowledge(*seen.put).looks.size(), 1U);
}

TEST_F(SlotsLeaseRule, ARefusalFencesAtOnce) {
  run_a();
  next_put({run(kA)});
  expect_fence(slots->worker_answered(now, no_lease(Kind::kFenced)), now);
}

TEST_F(SlotsLeaseRule, ACutOffThatARefusalDidNotReportFencesAtOnce) {
  run_a();
  next_put({run(kA)});
  ASSERT_TRUE(slots->worker_answered(now, no_lease(Kind::kConflict)).get_worker);
  expect_fence(slots->worker_answered(now, worker_lease(marked(kLife), "")), now);
}

TEST_F(SlotsLeaseRule, AMissingWorkerLeaseFencesAtOnce) {
  run_a();
  next_put({run(kA)});
  expect_fence(slots->worker_answered(now, no_lease(Kind::kGone)), now);
}

TEST_F(SlotsLeaseRule, AMissingWorkLeaseFencesAtOnce) {
  run_a();
  expect_fence(slots->watched(now, no_lease(Kind::kGone)), now);
}

TEST_F(SlotsLeaseRule, AWorkLeaseThatWasMadeAgainFencesAtOnce) {
  run_a();
  expect_fence(slots->watched(now, work_lease(9, {run(kB)}, "work-2")), now);
}

TEST_F(SlotsLeaseRule, AWorkerLeaseThatWasMadeAgainFencesAtOnce) {
  run_a();
  next_put({run(kA)});
  ASSERT_TRUE(slots->worker_answered(now, no_lease(Kind::kConflict)).get_worker);
  expect_fence(slots->worker_answered(now, worker_lease(marked(kLife), kWorker, "worker-2")), now);
}

TEST_F(SlotsLeaseRule, AnIdleWorkerThatWasCutOffEndsAtOnce) {
  serve();
  next_put({});
  EXPECT_EQ(slots->worker_answered(now, no_lease(Kind::kFenced)).exit_code, kFencedExitCode);
}

TEST_F(SlotsLeaseRule, ALateAnswerDoesNotUndoAFence) {
  run_a();
  const WorkerReport report = next_put({run(kA)});
  now = at(kTwoThirds) + seconds(1);
  EXPECT_EQ(slots->deadlines(now).terminate.size(), 1U);
  acknowledge(report);
  EXPECT_EQ(slots->phase(), Slots::Phase::kFencing);
}

TEST_F(SlotsLeaseRule, AfterAPauseOfAnyLengthTheDeadlinesComeFirst) {
  run_a();
  watch({run(kA), run(kB)});
  now = at(seconds(3600));
  const SlotOrders orders = current(kB);
  EXPECT_TRUE(orders.starts.empty());
  EXPECT_EQ(orders.terminate, std::vector<int>{0});
  EXPECT_TRUE(orders.kill_everything);
}

// Somebody has changed it, or a backup of the cluster's data was restored.
TEST_F(SlotsLeaseRule, AWorkLeaseWhoseSeqFallsFences) {
  run_a();
  slots->watched(now, work_lease(0, {}));
  EXPECT_EQ(slots->phase(), Slots::Phase::kServing) << "a read may overtake the watch";
  now += kTwoThirds / 2 + seconds(1);
  ASSERT_TRUE(slots->woke(now).get_work);
  slots->work_answered(now, work_lease(0, {}));
  EXPECT_EQ(slots->phase(), Slots::Phase::kFencing);
}

TEST_F(SlotsLeaseRule, AWorkLeaseWithOtherWordsOfTheSameSeqFences) {
  run_a();
  slots->watched(now, work_lease(seq, {run(kA)}));
  EXPECT_EQ(slots->phase(), Slots::Phase::kServing);
  slots->watched(now, work_lease(seq, {run(attempt("b"))}));
  EXPECT_EQ(slots->phase(), Slots::Phase::kFencing);
}

}  // namespace
}  // namespace holdfast::agent::testing
