// What the operator and a warm worker's agent say to each other, and what neither believes.
#include "core/worker_protocol.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace holdfast {
namespace {

AttemptId id(std::int64_t attempt, std::int64_t run = 0) {
  return {"0d5f7a3e-0000-4000-8000-000000000001", run, attempt};
}

WorkEntry entry(std::int64_t attempt, bool stop = false) { return {id(attempt), "film-17", stop}; }

Answer answer(std::int64_t attempt, AnswerKind kind) {
  Answer one;
  one.id = id(attempt);
  one.kind = kind;
  return one;
}

TEST(WorkerProtocol, WorkIsReadAsItWasWritten) {
  const Work work{7, true, {entry(1), entry(2, true)}};
  const Result<Work> read = decode_work(encode_work(work));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->seq, 7);
  EXPECT_TRUE(read->draining);
  ASSERT_EQ(read->entries.size(), 2u);
  EXPECT_EQ(read->entries[0].id, id(1));
  EXPECT_EQ(read->entries[0].job_name, "film-17");
  EXPECT_FALSE(read->entries[0].stop);
  EXPECT_TRUE(read->entries[1].stop);
}

TEST(WorkerProtocol, AnEntryNamesItsMessageIfThereIsOne) {
  Work work{7, false, {entry(1), entry(2)}};
  work.entries[1].message = 3;
  const std::string text = encode_work(work);
  EXPECT_EQ(text.find("message"), text.rfind("message")) << text;
  const Result<Work> read = decode_work(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->entries[0].message, 0);
  EXPECT_EQ(read->entries[1].message, 3);
  const Result<Work> strange = decode_work(
      R"({"seq": 1, "attempts": [{"name": "a", "job": "b", "run": 0, "attempt": 1, "do": "run", "message": -2}]})");
  ASSERT_TRUE(strange) << strange.error().message;
  EXPECT_EQ(strange->entries[0].message, 0);
}

TEST(WorkerProtocol, AReportIsReadAsItWasWritten) {
  WorkerReport report{"lease-uid", 7, "life-1", true, {}};
  Answer ended = answer(1, AnswerKind::kEnded);
  ended.exit_code = 3;
  ended.result = "s3://bucket/result \xc3\xa4";
  Answer running = answer(2, AnswerKind::kRunning);
  running.mark = 4;
  running.age_seconds = 9;
  running.message = "half";
  running.checkpoint = "frame 7\nof 9";
  report.answers = {ended, running, answer(3, AnswerKind::kStopped),
                    answer(4, AnswerKind::kReturned)};
  const Result<WorkerReport> read = decode_report(encode_report(report));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->work_uid, "lease-uid");
  EXPECT_EQ(read->seq, 7);
  EXPECT_EQ(read->life, "life-1");
  EXPECT_TRUE(read->draining);
  ASSERT_EQ(read->answers.size(), 4u);
  EXPECT_EQ(read->answers[0].exit_code, 3);
  EXPECT_EQ(read->answers[0].result, ended.result);
  EXPECT_EQ(read->answers[1].mark, 4);
  EXPECT_EQ(read->answers[1].age_seconds, 9);
  EXPECT_EQ(read->answers[1].message, "half");
  EXPECT_EQ(read->answers[1].checkpoint, "frame 7\nof 9")
      << "a checkpoint is the worker's own text";
  EXPECT_EQ(read->answers[2].kind, AnswerKind::kStopped);
  EXPECT_EQ(read->answers[3].kind, AnswerKind::kReturned);
}

TEST(WorkerProtocol, ALeaseWithoutTheAnnotationSaysNothingYet) {
  EXPECT_EQ(decode_work("")->seq, 0);
  EXPECT_TRUE(decode_report("")->answers.empty());
}

// A tenant can write anything there.
TEST(WorkerProtocol, WhatIsWrongIsRefusedAsAWhole) {
  for (const char* text :
       {"{", "[]", "null", "{}", R"({"seq":1})", R"({"seq":1,"attempts":{}})",
        R"({"seq":-1,"attempts":[]})", R"({"attempts":[]})", R"({"seq":1,"attempts":[{}]})",
        R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":0,"name":"n","do":"run"}]})",
        R"({"seq":1,"attempts":[{"job":"u","run":-1,"attempt":1,"name":"n","do":"run"}]})",
        R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"name":"","do":"run"}]})",
        R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"name":"n","do":"begin"}]})",
        R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"name":"n","do":"run"},
                                {"job":"u","run":0,"attempt":1,"name":"n","do":"stop"}]})"}) {
    EXPECT_FALSE(decode_work(text)) << text;
  }
  for (const char* text : {R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"is":"won"}]})",
                           R"({"seq":1,"attempts":[{"job":"","run":0,"attempt":1,"is":"ended"}]})",
                           R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"is":"ended"},
                                {"job":"u","run":0,"attempt":1,"is":"running"}]})"}) {
    EXPECT_FALSE(decode_report(text)) << text;
  }
  const std::string padding(kMaxProtocolBytes, ' ');
  EXPECT_FALSE(decode_work(R"({"seq":1,"attempts":[]})" + padding));
  Work many;
  for (std::size_t i = 0; i <= kMaxProtocolEntries; ++i) many.entries.push_back(entry(1 + i));
  EXPECT_FALSE(decode_work(encode_work(many)));
}

TEST(WorkerProtocol, TextsForPeopleAreCleanAndShort) {
  const Result<WorkerReport> read = decode_report(
      R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"is":"ended","code":900,"mark":-4,)"
      R"("result":"a\u0000b\n)" +
      std::string(2000, 'x') + R"(","message":")" + std::string(2000, 'y') + R"("}]})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->answers[0].exit_code, 255);
  EXPECT_EQ(read->answers[0].mark, 0);
  EXPECT_EQ(read->answers[0].result.size(), kMaxResultBytes);
  EXPECT_EQ(read->answers[0].message.size(), 256u);
}

TEST(WorkerProtocol, AResultIsOneLineAndAFailuresLastLinesStayLines) {
  const auto result = [](int code) {
    const Result<WorkerReport> read = decode_report(
        R"({"seq":1,"attempts":[{"job":"u","run":0,"attempt":1,"is":"ended","code":)" +
        std::to_string(code) + R"(,"result":"a\u001b\n  b\n"}]})");
    return read ? read->answers[0].result : read.error().message;
  };
  EXPECT_EQ(result(0), "a    b");
  EXPECT_EQ(result(1), "a\n  b");
}

TEST(WorkerProtocol, AReportNeverBecomesTooLongAndKeepsEachAttempt) {
  WorkerReport report{"lease-uid", 7, "life-1", false, {}};
  for (int i = 1; i <= 16; ++i) {
    Answer running = answer(i, AnswerKind::kRunning);
    running.message = std::string(256, 'm');
    running.checkpoint = std::string(1024, 'c');
    report.answers.push_back(running);
  }
  for (int i = 17; i <= 32; ++i) {
    Answer ended = answer(i, AnswerKind::kEnded);
    ended.result = std::string(kMaxResultBytes, 'r');
    report.answers.push_back(ended);
  }
  const std::string text = encode_report(report);
  EXPECT_LE(text.size(), kMaxProtocolBytes);
  const Result<WorkerReport> read = decode_report(text);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->answers.size(), 32u);
  int whole = 0;
  for (const Answer& one : read->answers) {
    EXPECT_TRUE(one.kind == AnswerKind::kRunning || one.result.size() == kMaxResultBytes)
        << "a result is never cut for want of room: it comes later";
    whole += one.kind == AnswerKind::kEnded;
  }
  EXPECT_GE(whole, 8);
  EXPECT_EQ(read->answers[16].kind, AnswerKind::kEnded) << "the first that ended come first";
}

// Each answer with the longest UID and numbers, and texts of `character` as long as they may be.
WorkerReport longest_report(AnswerKind kind, std::size_t uid_bytes, char character) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  WorkerReport report{std::string(36, 'w'), kLongest, std::string(36, 'l'), true, {}};
  for (std::size_t i = 0; i < kMaxProtocolEntries; ++i) {
    Answer one = answer(kLongest - static_cast<std::int64_t>(i), kind);
    one.id.job_uid = std::string(uid_bytes, 'u');
    one.id.run = one.mark = one.age_seconds = kLongest;
    one.exit_code = 255;
    one.message = std::string(256, character);
    one.checkpoint = std::string(1024, '\x01');
    if (kind == AnswerKind::kEnded) one.result = std::string(kMaxResultBytes, character);
    report.answers.push_back(one);
  }
  return report;
}

TEST(WorkerProtocol, AReportOfTheLongestAnswersOfEveryKindIsNeverTooLong) {
  for (const AnswerKind kind :
       {AnswerKind::kRunning, AnswerKind::kEnded, AnswerKind::kStopped, AnswerKind::kReturned}) {
    for (const char character : {'m', '"', '\x01'}) {
      const WorkerReport report = longest_report(kind, 128, character);
      const std::string text = encode_report(report);
      EXPECT_LE(text.size(), kMaxProtocolBytes);
      const Result<WorkerReport> read = decode_report(text);
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_EQ(read->answers.size(), kMaxProtocolEntries);
      for (std::size_t i = 0; i < kMaxProtocolEntries; ++i) {
        EXPECT_EQ(read->answers[i].id, report.answers[i].id);
        EXPECT_EQ(read->answers[i].mark, report.answers[i].mark);
        if (kind == AnswerKind::kReturned) {
          EXPECT_EQ(read->answers[i].kind, kind);
        }
      }
    }
  }
}

TEST(WorkerProtocol, AnEndComesWithItsCheckpointOrLater) {
  for (const AnswerKind kind : {AnswerKind::kEnded, AnswerKind::kStopped}) {
    const WorkerReport report = longest_report(kind, 36, '"');
    const Result<WorkerReport> read = decode_report(encode_report(report));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->answers[0].kind, kind) << "the first end always fits";
    for (const Answer& one : read->answers) {
      EXPECT_EQ(one.checkpoint.empty(), one.kind == AnswerKind::kRunning);
      EXPECT_EQ(one.message.empty(), one.kind == AnswerKind::kRunning);
    }
    EXPECT_EQ(read->answers.back().kind, AnswerKind::kRunning);
  }
}

// Fifteen of these are 17,095 bytes.
TEST(WorkerProtocol, EndsWithLongCheckpointsWaitForALaterReport) {
  WorkerReport report{"lease-uid", 7, "life-1", false, {}};
  for (int i = 1; i <= 15; ++i) {
    report.answers.push_back(answer(i, AnswerKind::kEnded));
    report.answers.back().checkpoint = std::string(1024, 'c');
  }
  const std::string text = encode_report(report);
  EXPECT_LE(text.size(), kMaxProtocolBytes);
  const Result<WorkerReport> read = decode_report(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->answers[13].kind, AnswerKind::kEnded);
  EXPECT_EQ(read->answers[14].kind, AnswerKind::kRunning);
}

TEST(WorkerProtocol, AUidWithControlCharactersIsNotRead) {
  Work work{7, false, {entry(1)}};
  work.entries[0].id.job_uid = "a\x01z";
  EXPECT_FALSE(decode_work(encode_work(work)));
}

}  // namespace
}  // namespace holdfast
