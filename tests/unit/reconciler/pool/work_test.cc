// What the operator writes into a warm worker's work Lease, and what it knows of an attempt there.
#include "reconciler/pool/work.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/only.h"

namespace holdfast::reconciler {
namespace {

AttemptId id(std::int64_t attempt) { return {"job-uid", 0, attempt}; }
Placed placed(std::int64_t attempt, std::int64_t message = 0) {
  return {id(attempt), "film", message};
}
WorkEntry entry(std::int64_t attempt, bool stop = false) { return {id(attempt), "film", stop}; }
WorkerReport reports(std::int64_t attempt, AnswerKind kind) {
  WorkerReport report;
  report.work_uid = "work-uid";
  Answer answer;
  answer.id = id(attempt);
  answer.kind = kind;
  report.answers.push_back(answer);
  return report;
}

class NextWork : public ::testing::Test {
 protected:
  std::optional<Work> step() {
    return next_work(work, report, there, [this](const AttemptId&) { return says; });
  }

  Work work{7, false, {}};
  WorkerReport report;
  std::vector<Placed> there;
  RecordSays says = RecordSays::kRun;
};

TEST_F(NextWork, AnIntentGetsItsEntryOnce) {
  there = {placed(1)};
  const auto next = step();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->seq, 8);
  EXPECT_EQ(only(next->entries).id, id(1));
  EXPECT_EQ(next->entries[0].job_name, "film");
  EXPECT_FALSE(next->entries[0].stop);
  work = *next;
  EXPECT_FALSE(step()) << "nothing is written without a change";
}

TEST_F(NextWork, AMessageThatHasChangedIsReported) {
  there = {placed(1, 3)};
  work = step().value();
  EXPECT_EQ(work.entries[0].message, 3);
  EXPECT_FALSE(step());
  there = {placed(1, 4)};
  work.draining = true;
  work = step().value();
  EXPECT_EQ(work.entries[0].message, 4) << "also to a worker that drains";
  there = {placed(1, 2)};
  EXPECT_FALSE(step()) << "an old view of the job takes nothing back";
}

// An old cache shows an attempt as open whose record has moved on.
TEST_F(NextWork, AnEntryNeedsARecordThatSaysRun) {
  there = {placed(1)};
  for (const RecordSays other : {RecordSays::kUnknown, RecordSays::kOver}) {
    says = other;
    EXPECT_FALSE(step());
  }
}

TEST_F(NextWork, AnEntryStaysAsLongAsItsAttemptIsOpen) {
  work.entries = {entry(1)};
  report = reports(1, AnswerKind::kEnded);
  for (const RecordSays stays : {RecordSays::kUnknown, RecordSays::kRun}) {
    says = stays;
    EXPECT_FALSE(step()) << "its answer would be forgotten before it counts";
  }
  says = RecordSays::kOver;
  EXPECT_TRUE(step().value().entries.empty());
}

TEST_F(NextWork, AnAttemptThatIsOverStopsBeforeItsEntryLeaves) {
  work.entries = {entry(1), entry(2)};
  report = reports(1, AnswerKind::kRunning);
  report.answers.push_back(reports(3, AnswerKind::kStopped).answers[0]);
  says = RecordSays::kOver;
  work = step().value();
  ASSERT_EQ(work.entries.size(), 2u);
  EXPECT_TRUE(work.entries[0].stop);
  EXPECT_TRUE(work.entries[1].stop) << "nobody knows if it has begun";
  EXPECT_FALSE(step());
  for (const AnswerKind kind : {AnswerKind::kStopped, AnswerKind::kEnded, AnswerKind::kReturned}) {
    report = reports(1, kind);
    const auto next = step();
    ASSERT_TRUE(next);
    EXPECT_EQ(only(next->entries).id, id(2));
  }
}

TEST_F(NextWork, StopIsNeverTakenBack) {
  work.entries = {entry(1, true)};
  there = {placed(1)};
  for (const RecordSays older : {RecordSays::kUnknown, RecordSays::kRun}) {
    says = older;
    EXPECT_FALSE(step());
  }
}

TEST_F(NextWork, AWorkerThatDrainsGetsNoEntry) {
  work = *marked(work, true, std::nullopt);
  EXPECT_EQ(work.seq, 8);
  work.entries = {entry(1)};
  there = {placed(1), placed(2)};
  EXPECT_FALSE(step());
  says = RecordSays::kOver;
  const auto next = step();
  ASSERT_TRUE(next) << "what it has can be stopped";
  EXPECT_TRUE(next->draining);
  EXPECT_EQ(next->entries.size(), 1u);
}

TEST_F(NextWork, TheEndOfItsPodMarksAWorkerAndAnEarlierEndMarksItAgain) {
  const PodEnd end{Time(std::chrono::seconds(9000)), std::chrono::seconds(60)};
  EXPECT_FALSE(marked(work, false, std::nullopt));
  work = marked(work, false, end).value();
  EXPECT_TRUE(work.draining);
  EXPECT_EQ(work.end, end);
  EXPECT_EQ(work.seq, 8);
  EXPECT_FALSE(marked(work, true, end)) << "nothing is written without a change";
  EXPECT_FALSE(marked(work, true, std::nullopt)) << "a pod that is gone takes nothing back";
  const PodEnd earlier{Time(std::chrono::seconds(8970)), std::chrono::seconds(30)};
  work = marked(work, true, earlier).value();
  EXPECT_EQ(work.end, earlier);
  work.entries = {entry(1)};
  says = RecordSays::kOver;
  EXPECT_EQ(step().value().end, earlier) << "other writes keep it";
}

TEST_F(NextWork, TheLeaseNeverGetsMoreEntriesThanItMayHave) {
  for (std::size_t i = 0; i < kMaxProtocolEntries + 5; ++i) {
    there.push_back(placed(static_cast<std::int64_t>(i) + 1));
  }
  work = step().value();
  EXPECT_EQ(work.entries.size(), kMaxProtocolEntries);
  EXPECT_TRUE(decode_work(encode_work(work)));
  EXPECT_FALSE(step());
}

WorkerView live() {
  WorkerView worker;
  worker.work = Work{7, false, {}};
  worker.work_uid = "work-uid";
  return worker;
}

TEST(AtPlace, AnAnswerCountsWhateverBecameOfTheWorker) {
  for (const WorkerIs is : {WorkerIs::kLive, WorkerIs::kRevoked, WorkerIs::kCutOff}) {
    WorkerView worker = live();
    worker.is = is;
    worker.report = reports(3, AnswerKind::kEnded);
    worker.report.answers[0].exit_code = 4;
    const Answer* answer = nullptr;
    EXPECT_EQ(at_place(id(3), worker, &answer), AtPlace::kEnded);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->exit_code, 4);
    worker.report = reports(3, AnswerKind::kStopped);
    EXPECT_EQ(at_place(id(3), worker), AtPlace::kStopped);
    worker.report = reports(3, AnswerKind::kReturned);
    EXPECT_EQ(at_place(id(3), worker), AtPlace::kReturned);
  }
}

TEST(AtPlace, AnAnswerOfAnotherAttemptSaysNothing) {
  WorkerView worker = live();
  worker.report = reports(2, AnswerKind::kEnded);
  const Answer* answer = nullptr;
  EXPECT_EQ(at_place(id(3), worker, &answer), AtPlace::kUnknown);
  EXPECT_FALSE(answer);
}

TEST(AtPlace, ARevokedWorkerIsNotEmpty) {
  WorkerView worker = live();
  worker.is = WorkerIs::kRevoked;
  worker.report = reports(3, AnswerKind::kRunning);
  EXPECT_FALSE(is_empty(at_place(id(3), worker)));
  EXPECT_FALSE(is_empty(at_place(id(4), worker))) << "it may have begun unseen";
}

TEST(AtPlace, ACutOffWorkerHasLostWhatItMayHaveBegun) {
  WorkerView worker = live();
  worker.is = WorkerIs::kCutOff;
  worker.report = reports(3, AnswerKind::kRunning);
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kLost);
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kUnknown) << "the work Lease must be read again";
  worker.read_after = true;
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kReturned) << "no entry: it never began";
  worker.work->entries = {entry(4)};
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kLost);
  worker.work->entries.clear();
  worker.work_uid = "another";
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kLost) << "the agent read another work Lease";
  worker.report.work_uid.clear();
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kReturned) << "the agent has read none";
  worker.work.reset();
  EXPECT_EQ(at_place(id(4), worker), AtPlace::kLost) << "it is gone: nobody knows";
}

TEST(AtPlace, AKillForMemoryIsJudgedOnceItIsKnownWhoWasThere) {
  WorkerView worker = live();
  worker.is = WorkerIs::kCutOff;
  worker.out_of_memory = true;
  worker.report = reports(3, AnswerKind::kRunning);
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kUnknown) << "the work Lease must be read again";
  worker.read_after = true;
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kLost);
  worker.work->entries = {entry(3)};
  EXPECT_EQ(attempts_at_end(worker), 1);
  worker.work->entries = {entry(3), entry(4, /*stop=*/true)};
  EXPECT_EQ(attempts_at_end(worker), 2) << "it may have begun unseen, and was being stopped";
  worker.report.answers.push_back(reports(4, AnswerKind::kEnded).answers[0]);
  EXPECT_EQ(attempts_at_end(worker), 1) << "what had ended took no memory";
  worker.work.reset();
  EXPECT_EQ(attempts_at_end(worker), 1);
}

TEST(AtPlace, AWorkerThatDrainsNeverBeginsWhatHasNoEntry) {
  WorkerView worker = live();
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kUnknown);
  worker.work->draining = true;
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kReturned);
  worker.report.work_uid = "another";
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kUnknown) << "the agent reads another work Lease";
  worker.report.work_uid = "work-uid";
  worker.work->entries = {entry(3)};
  EXPECT_EQ(at_place(id(3), worker), AtPlace::kUnknown);
}

TEST(AtPlace, AnAttemptThatWasEndedEarlyHasLeftWithItsAnswer) {
  for (const WorkerIs is : {WorkerIs::kLive, WorkerIs::kRevoked}) {
    WorkerView worker = live();
    worker.is = is;
    worker.read_after = true;
    worker.work->entries = {entry(3, true)};
    EXPECT_FALSE(has_left(id(3), worker)) << "it may have begun unseen";
    worker.report = reports(3, AnswerKind::kRunning);
    EXPECT_FALSE(has_left(id(3), worker));
    for (const AnswerKind kind :
         {AnswerKind::kStopped, AnswerKind::kEnded, AnswerKind::kReturned}) {
      worker.report = reports(3, kind);
      EXPECT_TRUE(has_left(id(3), worker));
    }
  }
}

TEST(AtPlace, AnAttemptThatWasEndedEarlyHasLeftACutOffWorker) {
  WorkerView worker = live();
  worker.is = WorkerIs::kCutOff;
  worker.report = reports(3, AnswerKind::kRunning);
  worker.work->entries = {entry(3)};
  EXPECT_TRUE(has_left(id(3), worker));
}

// Its entry has left with its answer, and the agent has forgotten it. Or it never had one.
TEST(AtPlace, AnAttemptThatWasEndedEarlyHasLeftIfItHasNoEntry) {
  WorkerView worker = live();
  worker.report = reports(2, AnswerKind::kRunning);
  EXPECT_FALSE(has_left(id(3), worker)) << "its entry may have come since";
  worker.read_after = true;
  EXPECT_TRUE(has_left(id(3), worker));
  worker.report.work_uid = "another";
  EXPECT_FALSE(has_left(id(3), worker)) << "the agent reads another work Lease";
  worker.report.work_uid = "work-uid";
  worker.report.seq = worker.work->seq + 1;
  EXPECT_FALSE(has_left(id(3), worker)) << "the work Lease was set back";
  worker.work.reset();
  EXPECT_FALSE(has_left(id(3), worker)) << "it is gone: nobody knows";
}

}  // namespace
}  // namespace holdfast::reconciler
