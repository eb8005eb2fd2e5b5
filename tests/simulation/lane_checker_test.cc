// The checker of batch/v1 Jobs sees each of its rules broken, and nothing else. No operator is
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/ledger_lane.h"

namespace holdfast::simulation {
namespace {

using testing::StartsWith;

class LaneChecker : public ::testing::Test {
 protected:
  // A DurableJob of the Job "j" is written. Null: it is gone.
  void durable(const std::string& uid, const char* phase, const Json& runs = Json::array()) {
    const Json owner = {{"kind", "Job"}, {"name", "j"}, {"uid", "j-uid"}, {"controller", true}};
    const Json json = {
        {"metadata",
         {{"name", "d"}, {"namespace", "n"}, {"uid", uid}, {"ownerReferences", {owner}}}},
        {"status", {{"phase", phase ? phase : "Running"}, {"runs", runs}}}};
    Applied write;
    write.resource = "durablejobs";
    (phase ? write.after : write.before) = &json;
    lane_.durable_job_written(write);
  }
  // The Job is written, with the DurableJob "d-uid" on record.
  void job(const std::string& outcome, const std::string& reason) {
    Json json = {
        {"metadata",
         {{"name", "j"},
          {"namespace", "n"},
          {"uid", "j-uid"},
          {"annotations",
           {{"holdfast.dev/durable-job", "d"}, {"holdfast.dev/durable-job-uids", "j-uid/d-uid"}}}}},
        {"status", Json::object()}};
    if (!outcome.empty()) {
      json["status"]["conditions"] =
          Json::array({{{"type", outcome}, {"status", "True"}, {"reason", reason}}});
    }
    Applied write;
    write.resource = "jobs";
    write.after = &json;
    lane_.job_written(write);
  }
  const std::string& violation() const { return violation_; }

 private:
  Scheduler scheduler_;
  ApiServer server_{[this] { return Gateway::beginning() + scheduler_.now(); }, 1};
  Gateway gateway_{scheduler_, server_, 1};
  std::string violation_;
  LaneLedger lane_{gateway_, [this](const std::string& what) { violation_ = what; }};
};

TEST_F(LaneChecker, AJobMayEndAsItsDurableJobHasEnded) {
  durable("d-uid", "Running");
  job("", "");
  durable("d-uid", "Succeeded");
  job("Complete", "CompletionsReached");
  EXPECT_EQ(violation(), "");
}

TEST_F(LaneChecker, SeesAJobThatEndsOtherwiseThanItsDurableJob) {
  durable("d-uid", "Failed");
  job("Complete", "CompletionsReached");
  EXPECT_THAT(violation(), StartsWith("S2 FencedOutcome"));
}

TEST_F(LaneChecker, SeesAJobThatEndsBeforeItsDurableJob) {
  durable("d-uid", "Cancelling");
  job("Failed", "Cancelled");
  EXPECT_THAT(violation(), StartsWith("S2 FencedOutcome"));
}

TEST_F(LaneChecker, ADurableJobMustBeGoneBeforeTheJobSaysSo) {
  durable("d-uid", "Running");
  job("Failed", "DurableJobDeleted");
  EXPECT_THAT(violation(), StartsWith("S2 FencedOutcome"));
}

TEST_F(LaneChecker, AJobMayEndOnceItsDurableJobIsGone) {
  durable("d-uid", nullptr);
  job("Failed", "DurableJobDeleted");
  EXPECT_EQ(violation(), "");
}

TEST_F(LaneChecker, SeesAnOutcomeThatChanges) {
  durable("d-uid", "Failed");
  job("Failed", "BackoffLimitExceeded");
  EXPECT_EQ(violation(), "");
  job("", "");
  EXPECT_THAT(violation(), StartsWith("S1 OneOutcome"));
}

TEST_F(LaneChecker, SeesTwoDurableJobsOfOneJobRun) {
  const Json run = Json::array({{{"attempt", 1}}});
  durable("d-uid", "Running", run);
  durable("late-uid", "Pending");
  EXPECT_EQ(violation(), "");
  durable("late-uid", "Running", run);
  EXPECT_THAT(violation(), StartsWith("S22 OnePlace"));
}

}  // namespace
}  // namespace holdfast::simulation
