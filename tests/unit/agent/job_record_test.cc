// Which attempts may begin by their job's record, and what their commands get of it.
#include "agent/wire/job_record.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace holdfast::agent {
namespace {

using Kind = JobReading::Kind;

const AttemptId kId{"job-uid", 0, 7};

Json the_job() {
  return Json::parse(R"({"metadata": {"name": "film", "namespace": "media", "uid": "job-uid"},
    "spec": {"workerPool": {"name": "pool"}, "payload": "p", "message": "m",
      "heartbeat": {"progressDeadlineSeconds": 90}},
    "status": {"phase": "Running", "runs": [{"index": 0, "attempt": 7, "workerUID": "worker-uid"}]}})");
}

JobAnswer read(const Json& job, const AttemptId& id = kId) {
  return read_job("film", id, "worker-uid", 200, job.dump());
}

std::string variable(const JobAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.assignment.variables) {
    if (key == name) return value;
  }
  return "-";
}

TEST(JobRecordRule, TheAttemptOnRecordMayBeginAtItsPlace) {
  const JobAnswer answer = read(the_job());
  ASSERT_EQ(answer.reading.kind, Kind::kCurrent) << answer.reading.why;
  EXPECT_EQ(answer.reading.progress_deadline, std::chrono::seconds(90));
  EXPECT_EQ(answer.assignment.payload, "p");
  EXPECT_EQ(answer.assignment.message, "m");
  EXPECT_EQ(variable(answer, "HOLDFAST_JOB_NAME"), "film");
  EXPECT_EQ(variable(answer, "HOLDFAST_JOB_UID"), "job-uid");
  EXPECT_EQ(variable(answer, "HOLDFAST_JOB_NAMESPACE"), "media");
  EXPECT_EQ(variable(answer, "HOLDFAST_ATTEMPT"), "7");
  for (const char* const name : {"JOB_COMPLETION_INDEX", "HOLDFAST_STAGE", "HOLDFAST_CHECKPOINT"}) {
    EXPECT_EQ(variable(answer, name), "-");
  }
}

TEST(JobRecordRule, NoOtherAttemptMayBegin) {
  const auto refuses = [](const char* patch, const std::string& why) {
    Json job = the_job();
    job.merge_patch(Json::parse(patch));
    const JobAnswer answer = read(job);
    EXPECT_EQ(answer.reading.kind, Kind::kOther) << patch;
    EXPECT_NE(answer.reading.why.find(why), std::string::npos) << answer.reading.why;
  };
  refuses(R"({"metadata": {"uid": "another"}})", "another job has this name");
  refuses(R"({"status": {"phase": "Failed"}})", "the job is Failed");
  refuses(R"({"status": {"runs": []}})", "no such run");
  refuses(R"({"status": {"runs": [{"attempt": 8, "workerUID": "worker-uid"}]}})", "attempt 8");
  refuses(R"({"status": {"runs": [{"attempt": 6, "workerUID": "worker-uid"}]}})", "attempt 6");
  refuses(R"({"status": {"runs": [{"attempt": 7, "workerUID": "other"}]}})", "another place");
  refuses(R"({"status": {"runs": [{"attempt": 7, "podUID": "worker-uid"}]}})", "another place");
  refuses(R"({"status": {"runs": [{"attempt": 7, "workerUID": "worker-uid",
            "nextAttemptTime": "2026-01-02T03:04:05Z"}]}})",
          "has ended");
  refuses(R"({"status": {"history": [{"attempt": 7, "outcome": "Failed"}]}})", "has ended");
  refuses(R"({"status": {"runs": [{"attempt": 7, "workerUID": "worker-uid"},
            {"attempt": 8, "workerUID": "other"}]}})",
          "attempt 8");
}

TEST(JobRecordRule, AWorkerWithoutAUidBeginsNothing) {
  Json job = the_job();
  job["status"]["runs"][0].erase("workerUID");
  EXPECT_EQ(read_job("film", kId, "", 200, job.dump()).reading.kind, Kind::kOther);
}

TEST(JobRecordRule, OnlyTheJobsOwnAbsenceIsAVerdict) {
  const std::string gone = R"({"message": "not found", "details": {"name": "film"}})";
  EXPECT_EQ(read_job("film", kId, "worker-uid", 404, gone).reading.kind, Kind::kOther);
  for (const auto& [status, body] :
       {std::pair(404, "404 page not found"), std::pair(403, "{}"), std::pair(500, ""),
        std::pair(200, "{}"), std::pair(200, "no JSON")}) {
    const JobAnswer answer = read_job("film", kId, "worker-uid", status, body);
    EXPECT_EQ(answer.reading.kind, Kind::kNone) << status << body;
    EXPECT_FALSE(answer.reading.why.empty());
  }
}

TEST(JobRecordRule, AnIndexedRunKnowsItsIndexAndItsCheckpoint) {
  Json job = the_job();
  job["spec"]["completionMode"] = "Indexed";
  job["status"]["runs"].push_back(
      {{"index", 3}, {"attempt", 9}, {"workerUID", "worker-uid"}, {"checkpoint", "half"}});
  const JobAnswer answer = read(job, {"job-uid", 3, 9});
  ASSERT_EQ(answer.reading.kind, Kind::kCurrent) << answer.reading.why;
  EXPECT_EQ(variable(answer, "JOB_COMPLETION_INDEX"), "3");
  EXPECT_EQ(variable(answer, "HOLDFAST_CHECKPOINT"), "half");
}

TEST(JobRecordRule, AStageHasItsOwnPayloadAndTheResultsBeforeIt) {
  Json job = the_job();
  job["spec"]["stages"] = Json::parse(R"([{"name": "cut-up", "payload": "c"}, {"name": "last"}])");
  job["status"]["stage"] = "cut-up";
  job["status"]["stages"] =
      Json::parse(R"([{"name": "main", "result": "42"}, {"name": "cut-up", "result": "old"},
                      {"name": "last", "result": "never"}])");
  JobAnswer answer = read(job);
  EXPECT_EQ(answer.assignment.payload, "c");
  EXPECT_EQ(answer.reading.progress_deadline, std::nullopt);
  EXPECT_EQ(variable(answer, "HOLDFAST_STAGE"), "cut-up");
  EXPECT_EQ(variable(answer, "HOLDFAST_RESULT_MAIN"), "42");
  EXPECT_EQ(variable(answer, "HOLDFAST_RESULT_CUT_UP"), "-");
  EXPECT_EQ(variable(answer, "HOLDFAST_RESULT_LAST"), "-");
  job["status"]["stage"] = "last";
  answer = read(job);
  EXPECT_EQ(answer.assignment.payload, "");
  EXPECT_EQ(variable(answer, "HOLDFAST_RESULT_CUT_UP"), "old");
  job["status"]["stage"] = "main";
  EXPECT_EQ(read(job).assignment.payload, "p");
  job["status"]["stage"] = "unknown";
  EXPECT_EQ(read(job).reading.kind, Kind::kOther);
}

TEST(JobRecordRule, TextsAreBounded) {
  Json job = the_job();
  job["spec"]["message"] = std::string(5000, 'm');
  job["status"]["runs"][0]["checkpoint"] = std::string(2000, 'c');
  const JobAnswer answer = read(job);
  EXPECT_EQ(answer.assignment.message.size(), 4096u);
  EXPECT_EQ(variable(answer, "HOLDFAST_CHECKPOINT"), "-");
  job["spec"]["payload"] = std::string(kMaxPayloadBytes, 'x');
  EXPECT_EQ(read(job).assignment.payload.size(), kMaxPayloadBytes);
  job["spec"]["payload"] = std::string(kMaxPayloadBytes + 1, 'x');
  EXPECT_EQ(read(job).reading.kind, Kind::kOther);
}

}  // namespace
}  // namespace holdfast::agent
