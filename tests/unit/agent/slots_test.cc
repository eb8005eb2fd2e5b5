// What the agent of a warm worker does with its entries: begin, stop, answer, hand back.
#include "tests/unit/agent/slots_fixture.h"

namespace holdfast::agent::testing {
namespace {

using JobKind = JobReading::Kind;

class SlotsRule : public SlotsTest {
 protected:
  // As the Lease holds it if there was no room for the end of b.
  static WorkerReport without_room_for_b(WorkerReport report) {
    for (Answer& one : report.answers) {
      if (one.id == kB) one.kind = AnswerKind::kRunning;
    }
    return report;
  }
};

TEST_F(SlotsRule, ANewEntryIsLookedAtAndThenBegins) {
  serve();
  const SlotOrders seen = watch({run(kA)});
  EXPECT_EQ(only(seen.looks).id, kA);
  EXPECT_EQ(seen.looks[0].job_name, "name");
  EXPECT_TRUE(seen.starts.empty());
  now += milliseconds(5);
  const SlotOrders orders = current(kA);
  EXPECT_EQ(only(orders.starts).id, kA);
  EXPECT_EQ(orders.starts[0].slot, seen.looks[0].slot);
  EXPECT_EQ(orders.starts[0].before, at(kTwoThirds));
  EXPECT_FALSE(orders.put) << "a start waits for the next renewal";
}

TEST_F(SlotsRule, AnAttemptBeginsOnce) {
  run_a();
  EXPECT_TRUE(current(kA).starts.empty()) << "a second answer";
  const SlotOrders again = watch({run(kA)});
  EXPECT_TRUE(again.looks.empty() && again.starts.empty());
  end(0);
  EXPECT_TRUE(watch({run(kA)}).looks.empty());
}

TEST_F(SlotsRule, LooksAtDifferentJobsGoSideBySide) {
  serve();
  const SlotOrders orders = watch({run(kA), run(kB), run(kC)});
  ASSERT_EQ(orders.looks.size(), 2U) << "as many as there are slots";
  EXPECT_NE(orders.looks[0].slot, orders.looks[1].slot);
}

TEST_F(SlotsRule, WhatFindsNoSlotWaits) {
  serve(1);
  begin({run(kA), run(kB)}, kA);
  const SlotOrders orders = end(0);
  EXPECT_EQ(only(orders.looks).id, kB);
}

TEST_F(SlotsRule, AnAttemptThatIsNotOnRecordIsHandedBack) {
  serve();
  watch({run(kA)});
  const SlotOrders orders = slots->looked(now, kA, job(JobKind::kOther));
  EXPECT_TRUE(orders.starts.empty());
  ASSERT_TRUE(orders.put) << "at once";
  ASSERT_TRUE(answer_to(*orders.put, kA));
  EXPECT_EQ(answer_to(*orders.put, kA)->kind, AnswerKind::kReturned);
}

TEST_F(SlotsRule, ALookWithoutAVerdictIsRepeatedAndLeavesTheSlotToOthers) {
  serve(1);
  watch({run(kA), run(kB)});
  const SlotOrders orders = slots->looked(now, kA, job(JobKind::kNone));
  EXPECT_EQ(only(orders.looks).id, kB);
  now += milliseconds(1);
  const SlotOrders other = slots->looked(now, kB, job(JobKind::kOther));
  EXPECT_TRUE(other.looks.empty()) << "after a pause";
  now += milliseconds(1100);
  const SlotOrders later = slots->woke(now);
  EXPECT_EQ(only(later.looks).id, kA);
}

TEST_F(SlotsRule, ALookThatTheApiServerPutsOffWaits) {
  serve();
  watch({run(kA)});
  JobReading throttled = job(JobKind::kNone);
  throttled.retry_after = seconds(5);
  slots->looked(now, kA, throttled);
  now += seconds(5) - milliseconds(1);
  EXPECT_TRUE(slots->woke(now).looks.empty());
  now += milliseconds(501);
  EXPECT_EQ(slots->woke(now).looks.size(), 1U);
}

TEST_F(SlotsRule, ALookThatIsNeverAnsweredIsGivenUp) {
  serve();
  watch({run(kA)});
  now += seconds(10);
  const SlotOrders orders = slots->woke(now);
  ASSERT_EQ(orders.abort_looks.size(), 1U);
  EXPECT_TRUE(current(kA).starts.empty()) << "a late answer";
}

TEST_F(SlotsRule, AStopBeforeTheBeginIsAHandBack) {
  serve(1);
  watch({run(kA), run(kB)});
  now += milliseconds(25);
  const SlotOrders orders = watch({stop(kA), stop(kB)});
  EXPECT_EQ(orders.abort_looks, std::vector<AttemptId>{kA});
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(answer_to(*orders.put, kA)->kind, AnswerKind::kReturned);
  EXPECT_EQ(answer_to(*orders.put, kB)->kind, AnswerKind::kReturned);
  EXPECT_TRUE(current(kA).starts.empty());
}

TEST_F(SlotsRule, AStopIsNeverTakenBack) {
  serve();
  watch({stop(kA)});
  const SlotOrders orders = watch({run(kA)});
  EXPECT_TRUE(orders.looks.empty());
  begin({run(kA), run(kB)}, kB);
  EXPECT_EQ(watch({run(kA), stop(kB)}).terminate.size(), 1U);
  watch({run(kA), run(kB)});
  now += seconds(8);
  EXPECT_EQ(slots->woke(now).kill, std::vector<int>{0});
}

TEST_F(SlotsRule, AStopAsksFirstAndKillsAfterTheGrace) {
  run_a();
  const SlotOrders asked = watch({stop(kA)});
  EXPECT_EQ(asked.terminate, std::vector<int>{0});
  EXPECT_TRUE(asked.kill.empty());
  EXPECT_EQ(asked.wake_at, now + seconds(8));
  EXPECT_TRUE(watch({stop(kA)}).terminate.empty()) << "once";
  now += seconds(8);
  EXPECT_EQ(slots->woke(now).kill, std::vector<int>{0});
  EXPECT_FALSE(slots->happened(now, 0, Ended{137, ""}).put);
  const SlotOrders dead = slots->happened(now, 0, AllDead{});
  const SteadyTime died = now;
  EXPECT_EQ(answer_to(put_of(dead, {stop(kA)}), kA)->kind, AnswerKind::kStopped);
  EXPECT_EQ(now, died) << "at once";
}

TEST_F(SlotsRule, ACommandThatEndsWhenItIsAskedToHasStopped) {
  run_a();
  watch({stop(kA)});
  EXPECT_EQ(slots->happened(now, 0, Ended{0, "done"}).kill, std::vector<int>{0}) << "what it left";
  const WorkerReport report = put_of(slots->happened(now, 0, AllDead{}), {stop(kA)});
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kStopped);
  EXPECT_EQ(answer_to(report, kA)->result, "");
}

TEST_F(SlotsRule, AnEndThatCameBeforeTheStopStaysTheAnswer) {
  run_a();
  slots->happened(now, 0, Ended{3, "done"});
  const SlotOrders stopped = watch({stop(kA)});
  EXPECT_TRUE(stopped.terminate.empty());
  const WorkerReport report = put_of(slots->happened(now, 0, AllDead{}), {stop(kA)});
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kEnded);
  EXPECT_EQ(answer_to(report, kA)->exit_code, 3);
  EXPECT_EQ(answer_to(report, kA)->result, "done");
}

TEST_F(SlotsRule, AnAttemptHasEndedWhenItsLastProcessIsDead) {
  run_a();
  const SlotOrders ended = slots->happened(now, 0, Ended{0, ""});
  EXPECT_EQ(ended.kill, std::vector<int>{0});
  EXPECT_FALSE(ended.put || ended.get_work);
  EXPECT_EQ(ended.wake_at, now + milliseconds(50));
  now += milliseconds(50);
  EXPECT_EQ(slots->woke(now).kill, std::vector<int>{0}) << "they may have forked";
  const SlotOrders other = watch({run(kA), stop(kB)});
  EXPECT_EQ(answer_to(*other.put, kA)->kind, AnswerKind::kRunning);
  EXPECT_FALSE(acknowledge(*other.put).put);
  now += milliseconds(25);
  EXPECT_EQ(answer_to(*slots->happened(now, 0, AllDead{}).put, kA)->kind, AnswerKind::kEnded);
}

TEST_F(SlotsRule, AnAnswerIsKeptUntilItsEntryIsGone) {
  run_a();
  WorkerReport report = put_of(end(0), {run(kA)});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(answer_to(report, kA));
    EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kEnded);
    acknowledge(report);
    report = next_put({run(kA)});
  }
  acknowledge(report);
  watch({});
  EXPECT_TRUE(next_put({}).answers.empty());
}

TEST_F(SlotsRule, AnEntryThatIsGoneTakesItsProcessesWithIt) {
  serve(1);
  begin({run(kA)}, kA);
  const SlotOrders gone = watch({run(kB)});
  EXPECT_EQ(gone.kill, std::vector<int>{0});
  EXPECT_TRUE(gone.looks.empty()) << "the slot is not free yet";
  const SlotOrders dead = end(0, 137);
  EXPECT_EQ(only(dead.looks).id, kB);
  EXPECT_FALSE(answer_to(next_put({run(kB)}), kA));
}

TEST_F(SlotsRule, AnEntryThatIsGoneEndsItsLook) {
  serve();
  watch({run(kA)});
  EXPECT_EQ(watch({}).abort_looks, std::vector<AttemptId>{kA});
  EXPECT_TRUE(current(kA).starts.empty());
}

TEST_F(SlotsRule, AWorkerThatDrainsHandsBackWhatHasNotBegun) {
  serve(1);
  begin({run(kA), run(kB)}, kA);
  WorkView draining = work_lease(++seq, {run(kA), run(kB), run(kC)});
  draining.work->draining = true;
  const SlotOrders orders = slots->watched(now, draining);
  EXPECT_TRUE(orders.terminate.empty()) << "what runs goes on";
  ASSERT_TRUE(orders.put);
  EXPECT_TRUE(orders.put->draining);
  EXPECT_EQ(answer_to(*orders.put, kA)->kind, AnswerKind::kRunning);
  EXPECT_EQ(answer_to(*orders.put, kB)->kind, AnswerKind::kReturned);
  EXPECT_EQ(answer_to(*orders.put, kC)->kind, AnswerKind::kReturned);
  acknowledge(*orders.put);
  now += milliseconds(75);
  const AttemptId late = attempt("late");
  const SlotOrders more = watch({run(kA), run(late)});
  EXPECT_TRUE(more.looks.empty());
  EXPECT_EQ(answer_to(*more.put, late)->kind, AnswerKind::kReturned);
  acknowledge(*more.put);
  end(0);
  EXPECT_FALSE(watch({}).exit_code);
  EXPECT_EQ(slots->phase(), Slots::Phase::kServing) << "it is the operator who deletes the pod";
}

TEST_F(SlotsRule, AfterSigtermItHandsBackAndEndsWhenAllEntriesAreGone) {
  serve(1);
  begin({run(kA), run(kB)}, kA);
  const SlotOrders orders = slots->asked_to_end(now);
  ASSERT_TRUE(orders.put);
  EXPECT_TRUE(orders.put->draining);
  EXPECT_EQ(answer_to(*orders.put, kB)->kind, AnswerKind::kReturned);
  EXPECT_TRUE(orders.terminate.empty());
  acknowledge(*orders.put);
  now += seconds(2);
  const WorkerReport last = put_of(end(0), {run(kA), run(kB)});
  EXPECT_EQ(answer_to(last, kA)->kind, AnswerKind::kEnded);
  EXPECT_FALSE(acknowledge(last).exit_code) << "an operator may still read the Lease";
  EXPECT_EQ(watch({}).exit_code, 0);
}

TEST_F(SlotsRule, AnIdleWorkerSaysThatItDrainsBeforeItEnds) {
  serve();
  const SlotOrders orders = slots->asked_to_end(now);
  EXPECT_FALSE(orders.exit_code) << "an entry may be on its way";
  ASSERT_TRUE(orders.put);
  EXPECT_TRUE(orders.put->draining);
  EXPECT_EQ(acknowledge(*orders.put).exit_code, 0);
}

TEST_F(SlotsRule, TheGraceOfThePodIsEnoughToStopAndToReport) {
  run_a();
  acknowledge(*slots->asked_to_end(now).put);
  now = at(seconds(18));
  acknowledge(next_put({run(kA)}));
  now = at(seconds(21)) - milliseconds(1);
  EXPECT_TRUE(slots->woke(now).terminate.empty());
  now = at(seconds(21));
  const SlotOrders asked = slots->woke(now);
  EXPECT_EQ(asked.terminate, std::vector<int>{0}) << "8 s before the kill";
  EXPECT_TRUE(kills_at(seconds(29)));
  const WorkerReport report = put_of(end(0, 137), {run(kA)});
  EXPECT_LT(now, at(seconds(30)));
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kStopped);
  acknowledge(report);
  now = at(seconds(30));
  EXPECT_EQ(slots->woke(now).exit_code, 0);
}

TEST_F(SlotsRule, TheRealEndOfThePodTakesThePlaceOfTheAssumedOne) {
  run_a_until_sigterm(seconds(8), seconds(3600));
  now += seconds(1);
  EXPECT_TRUE(mark({run(kA)}, seconds(45)).terminate.empty());
  now = at(seconds(15));
  acknowledge(next_put({run(kA)}));
  EXPECT_TRUE(terminates_at(seconds(36))) << "44 s less the command's 8 s";
  EXPECT_TRUE(kills_at(seconds(44)));
}

// `kubectl drain --grace-period=5` of a pod whose template allows an hour.
TEST_F(SlotsRule, WithLessTimeThanItsGraceACommandIsAskedToEndAtOnceAndKilledBeforeThePodIs) {
  serve(2, seconds(30), seconds(3600));
  begin({run(kA)}, kA);
  EXPECT_TRUE(slots->asked_to_end(now).terminate.empty());
  now += milliseconds(200);
  EXPECT_EQ(mark({run(kA)}, seconds(5)).terminate, std::vector<int>{0});
  EXPECT_TRUE(kills_at(seconds(4)));
}

// `kubectl drain`, and later `kubectl delete --grace-period=30`: the kubelet waits 30 s from then.
TEST_F(SlotsRule, ASecondDeletionWithLessGraceLeavesTimeToEnd) {
  run_a_until_sigterm(seconds(8), seconds(600));
  now += seconds(1);
  EXPECT_TRUE(mark({run(kA)}, seconds(600)).terminate.empty());
  now = at(seconds(15));
  acknowledge(next_put({run(kA)}));
  now = at(seconds(25));
  const SlotOrders orders = mark({run(kA)}, seconds(30));
  EXPECT_TRUE(orders.terminate.empty());
  EXPECT_FALSE(orders.exit_code);
  now = at(seconds(30));
  acknowledge(next_put({run(kA)}));
  EXPECT_TRUE(terminates_at(seconds(46))) << "29 s less the command's 8 s";
}

// A deletion without grace, after one with some.
TEST_F(SlotsRule, ASecondDeletionThatLeavesNoTimeEndsThemAtOnce) {
  run_a_until_sigterm(seconds(30), seconds(600));
  mark({run(kA)}, seconds(600));
  now = at(seconds(5));
  EXPECT_EQ(mark({run(kA)}, seconds(2)).terminate, std::vector<int>{0});
  EXPECT_TRUE(kills_at(seconds(6)));
}

TEST_F(SlotsRule, TheEndOfAPodCountsBeforeItsKubeletSendsSigterm) {
  serve(2, seconds(30), seconds(60));
  begin({run(kA)}, kA);
  EXPECT_EQ(mark({run(kA)}, seconds(10)).terminate, std::vector<int>{0});
  now += seconds(6);
  slots->asked_to_end(now);  // after the pod's preStop hook
  EXPECT_TRUE(kills_at(seconds(9)));
}

TEST_F(SlotsRule, WithoutAMarkAPodEndsAfterThirtySecondsAndAMarkCorrectsThat) {
  run_a_until_sigterm(seconds(600), seconds(3600));
  EXPECT_TRUE(terminates_at(seconds(2))) << "the mark may be on its way";
  now = at(seconds(29)) - milliseconds(1);
  EXPECT_TRUE(slots->woke(now).kill.empty());
  mark({run(kA)}, seconds(3600));
  now = at(seconds(30));
  EXPECT_TRUE(slots->woke(now).kill.empty()) << "it has as long as it is said to have";
  EXPECT_FALSE(slots->woke(now).exit_code);
}

TEST_F(SlotsRule, AShortGraceLeavesAMomentForTheMark) {
  run_a_until_sigterm(seconds(30), seconds(5));
  EXPECT_TRUE(terminates_at(seconds(1))) << "a fifth of it";
  EXPECT_TRUE(kills_at(seconds(4)));
}

// A pool whose template has a grace of an hour: its own grace ends the command.
TEST_F(SlotsRule, AStoppedCommandIsKilledAfterItsOwnGraceWhateverThePodsIs) {
  serve(2, seconds(8), seconds(3600));
  begin({run(kA)}, kA);
  EXPECT_EQ(watch({stop(kA)}).terminate, std::vector<int>{0});
  EXPECT_TRUE(kills_at(seconds(8)));
}

TEST_F(SlotsRule, NoPauseKeepsTheLastReportFromTheLease) {
  run_a();
  ASSERT_TRUE(slots->asked_to_end(now).put);
  now += seconds(9);
  LeaseRefusal throttled = no_lease(LeaseRefusal::Kind::kNone);
  throttled.retry_after = seconds(3600);
  slots->worker_answered(now, throttled);
  const WorkerReport last = put_of(end(0), {run(kA)});
  EXPECT_EQ(answer_to(last, kA)->kind, AnswerKind::kEnded);
  EXPECT_LE(now, at(seconds(29))) << "a second before the grace ends";
}

TEST_F(SlotsRule, WhatCannotBeKilledDrainsTheWorkerAndThenEndsIt) {
  run_a_and_b();
  const std::vector<WorkEntry> entries = {run(kA), run(kB)};
  slots->happened(now, 0, Ended{0, ""});
  now += seconds(10);
  const SlotOrders stuck = slots->woke(now);
  EXPECT_FALSE(stuck.exit_code) << "another attempt runs";
  EXPECT_TRUE(slots->draining());
  const WorkerReport report = put_of(stuck, entries);
  EXPECT_TRUE(report.draining);
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kRunning) << "it has not ended";
  acknowledge(report);
  const WorkerReport last = put_of(end(1), entries);
  EXPECT_EQ(answer_to(last, kB)->kind, AnswerKind::kEnded);
  EXPECT_FALSE(acknowledge(last).exit_code);
  EXPECT_EQ(watch({run(kA)}).exit_code, kFencedExitCode);
}

TEST_F(SlotsRule, WhatDiesLateHasEnded) {
  run_a_and_b();
  const std::vector<WorkEntry> entries = {run(kA), run(kB)};
  slots->happened(now, 0, Ended{0, ""});
  now += seconds(10);
  acknowledge(put_of(slots->woke(now), entries));
  const WorkerReport report = put_of(slots->happened(now, 0, AllDead{}), entries);
  EXPECT_EQ(answer_to(report, kA)->kind, AnswerKind::kEnded);
  acknowledge(report);
  EXPECT_EQ(watch({run(kA)}).kill, std::vector<int>{1});
  EXPECT_FALSE(slots->happened(now, 1, AllDead{}).exit_code) << "an answer is there to be read";
}

TEST_F(SlotsRule, ProgressAndCheckpointsWaitALittle) {
  run_a();
  acknowledge(next_put({run(kA)}));
  const SteadyTime renewed = now;
  EXPECT_EQ(slots->happened(now, 0, Progressed{"half"}).wake_at, renewed + seconds(6)) << "D/10";
  EXPECT_EQ(slots->happened(now, 0, Checkpointed{1, "page 7"}).wake_at, renewed + seconds(1));
  const WorkerReport report = next_put({run(kA)});
  EXPECT_EQ(now, renewed + seconds(1));
  EXPECT_EQ(answer_to(report, kA)->mark, 1);
  EXPECT_EQ(answer_to(report, kA)->message, "half");
  EXPECT_EQ(answer_to(report, kA)->checkpoint, "page 7");
  slots->happened(now, 0, Checkpointed{2, "page 8"});
  const SlotOrders kept = acknowledge(report);
  EXPECT_EQ(only(kept.kept).number, 1) << "a later one came after the renewal was sent";
}

TEST_F(SlotsRule, ACheckpointThatAReportLeftOutIsNotKept) {
  run_a();
  slots->happened(now, 0, Checkpointed{1, "page 7"});
  WorkerReport report = next_put({run(kA)});
  report.answers[0].checkpoint.clear();
  EXPECT_TRUE(acknowledge(report).kept.empty());
}

TEST_F(SlotsRule, TheMissedProgressDeadlineOfACommandIsReportedAtOnce) {
  serve();
  watch({run(kA)});
  JobReading reading = job(JobKind::kCurrent);
  reading.progress_deadline = seconds(25);
  slots->looked(now, kA, reading);
  acknowledge(next_put({run(kA)}));
  const SteadyTime before = now;
  const WorkerReport report = next_put({run(kA)});
  EXPECT_EQ(now, at(seconds(25)));
  EXPECT_EQ(answer_to(report, kA)->age_seconds, 25);
  EXPECT_LT(before, now);
  acknowledge(report);
  EXPECT_GT(slots->woke(now).wake_at, now + seconds(10)) << "once";
}

TEST_F(SlotsRule, AnAnswerThatDidNotFitIsSentWhenAnotherEntryLeaves) {
  run_a_and_b();
  now += milliseconds(25);
  const SlotOrders first = end(0);
  end(1);
  now += milliseconds(25);
  const SlotOrders second = acknowledge(*first.put);
  ASSERT_TRUE(second.put);
  const SlotOrders quiet = acknowledge(without_room_for_b(*second.put));
  EXPECT_FALSE(quiet.put || quiet.get_work) << "it would not fit again";
  now += milliseconds(25);
  const SlotOrders orders = watch({run(kB)});
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(answer_to(*orders.put, kB)->kind, AnswerKind::kEnded);
}

TEST_F(SlotsRule, AnAnswerThatALaterReportHadNoRoomForIsSentAgain) {
  run_a_and_b();
  now += milliseconds(25);
  const SlotOrders first = end(1);
  end(0);
  now += milliseconds(25);
  const SlotOrders second = acknowledge(*first.put);
  ASSERT_TRUE(second.put);
  acknowledge(without_room_for_b(*second.put));
  now += milliseconds(25);
  const SlotOrders orders = watch({run(kB)});
  ASSERT_TRUE(orders.put);
  EXPECT_EQ(answer_to(*orders.put, kB)->kind, AnswerKind::kEnded);
}

}  // namespace
}  // namespace holdfast::agent::testing
