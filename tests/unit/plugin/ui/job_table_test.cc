// The page's table: filters, order, windows, counts and causes.
#include "plugin/ui/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/json.h"

namespace holdfast::plugin {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Time kNow = *parse_time("2026-07-01T14:00:00Z");

JobRowPtr row(const std::string& name, const Json& status = {}, const Json& spec = {},
              const Json& labels = {}) {
  const Json job = {{"metadata",
                     {{"name", name},
                      {"namespace", "media"},
                      {"uid", "uid-" + name},
                      {"resourceVersion", "7"},
                      {"labels", labels},
                      {"creationTimestamp", "2026-07-01T13:00:00Z"}}},
                    {"spec", spec},
                    {"status", status}};
  return kube::as<JobRow>(decode_job_row(*JsonDocument::parse(job.dump())));
}

Json waits(const std::string& phase, const std::string& reason, const std::string& since,
           bool stalled = false, const std::string& deadline = "") {
  Json status = {{"phase", phase}, {"waiting", {{"reason", reason}, {"since", since}}}};
  if (!deadline.empty()) status["waiting"]["deadline"] = deadline;
  if (stalled) status["conditions"] = {{{"type", "Stalled"}, {"status", "True"}}};
  return status;
}

Json ended(const std::string& phase, const std::string& reason, const std::string& at) {
  const std::string type = phase == "Succeeded" ? "Complete" : phase;
  return {{"phase", phase},
          {"completionTime", at},
          {"conditions",
           {{{"type", type}, {"status", "True"}, {"reason", reason}, {"message", "3 failed"}}}}};
}

std::vector<std::string> names(const JobView& view) {
  std::vector<std::string> names;
  for (const JobRowPtr& one : view.rows) names.push_back(one->name);
  return names;
}

bool is_in(const std::string& filter, const JobRowPtr& job) {
  const Result<JobFilter> parsed = parse_job_filter(filter);
  EXPECT_TRUE(parsed.ok()) << filter;
  return parsed.ok() && holds(*parsed, *job, kNow);
}

class UiTable : public ::testing::Test {
 protected:
  UiTable() {
    put(row("done", ended("Succeeded", "CompletionsReached", "2026-07-01T13:30:00Z")));
    put(row("runs", waits("Running", "PodRunning", "2026-07-01T13:50:00Z")));
    put(row("late", waits("Backoff", "RetryBackoff", "2026-07-01T13:40:00Z", false,
                          "2026-07-01T13:59:00Z")));
    put(row("stuck", waits("Pending", "PodUnschedulable", "2026-07-01T13:20:00Z", true)));
    put(row("failed", ended("Failed", "BackoffLimitExceeded", "2026-07-01T13:55:00Z")));
  }
  void put(const JobRowPtr& row) { table_.put(table_.find("media", row->name), row); }

  JobTable table_;
};

TEST_F(UiTable, ShowsTheWorstFirst) {
  EXPECT_THAT(names(table_.view({}, kNow)), ElementsAre("stuck", "late", "failed", "runs", "done"));
}

TEST_F(UiTable, SortsAndFiltersOverAllAndReturnsAWindow) {
  JobQuery query;
  query.sort = JobSort::kName;
  query.offset = 1;
  query.limit = 2;
  const JobView view = table_.view(query, kNow);
  EXPECT_EQ(view.matching, 5U);
  EXPECT_THAT(names(view), ElementsAre("failed", "late"));
  query.reverse = true;
  EXPECT_THAT(names(table_.view(query, kNow)), ElementsAre("runs", "late"));
  query.offset = 100;
  EXPECT_THAT(names(table_.view(query, kNow)), IsEmpty());
}

TEST_F(UiTable, GroupsThoseThatNeedAPersonByCause) {
  put(row("stuck-2", waits("Pending", "PodUnschedulable", "2026-07-01T13:10:00Z", true)));
  const std::vector<Cause> causes = table_.causes(kNow);
  ASSERT_EQ(causes.size(), 3U);
  EXPECT_EQ(causes[0].reason, "PodUnschedulable");
  EXPECT_EQ(causes[0].count, 2U);
  EXPECT_EQ(causes[0].oldest, parse_time("2026-07-01T13:10:00Z"));
  EXPECT_EQ(causes[0].some.front()->name, "stuck-2");
  EXPECT_EQ(causes[1].rank, Rank::kLate);
  EXPECT_EQ(causes[2].reason, "BackoffLimitExceeded");
}

TEST_F(UiTable, RowsWithoutATimeComeLastInEitherOrder) {
  put(row("unread"));
  JobQuery query;
  query.sort = JobSort::kSince;
  EXPECT_EQ(names(table_.view(query, kNow)).back(), "unread");
  query.reverse = true;
  EXPECT_EQ(names(table_.view(query, kNow)).back(), "unread");
}

// A hundred that have failed hide none that runs.
TEST_F(UiTable, GroupsInOnePass) {
  const Json pool = {{"workerPool", {{"name", "gpu"}}}};
  for (int i = 0; i < 150; ++i) {
    put(row("gone-" + std::to_string(i),
            ended("Failed", "BackoffLimitExceeded", "2026-07-01T13:55:00Z"), pool));
  }
  put(row("lives", waits("Running", "WorkerRunning", "2026-07-01T13:50:00Z"), pool));
  const auto groups =
      table_.grouped([](const JobRow& one) { return one.has_ended() ? "" : one.pool.get(); }, kNow);
  ASSERT_EQ(groups.at("gpu").size(), 1U);
  EXPECT_EQ(groups.at("gpu")[0]->name, "lives");
}

// Its pod may run, and what needs a person is another thing.
TEST_F(UiTable, GroupsByWhatNeedsThePerson) {
  Json status = waits("Running", "PodRunning", "2026-07-01T13:50:00Z");
  status["conditions"] = {
      {{"type", "Stalled"}, {"status", "True"}, {"reason", "NotKnownToThisVersion"}}};
  put(row("newer", status));
  EXPECT_EQ(table_.causes(kNow)[0].reason, "NotKnownToThisVersion");
  // Its page leads to the table with this filter.
  put(row("other", waits("Running", "PodRunning", "2026-07-01T13:50:00Z")));
  JobQuery query;
  query.filter = *parse_job_filter("is:stalled reason:NotKnownToThisVersion");
  EXPECT_EQ(table_.view(query, kNow).matching, 1U);
}

// Counts are kept: whatever comes, changes and goes, they are those of a new count.
TEST_F(UiTable, CountsAreThoseOfACount) {
  std::mt19937 random(7);
  const char* const phases[] = {"Pending", "Running", "Succeeded", ""};
  for (int i = 0; i < 2'000; ++i) {
    const std::string name = "job-" + std::to_string(random() % 50);
    const JobRowPtr before = table_.find("media", name);
    if (before && random() % 3 == 0) {
      table_.put(before, nullptr);
    } else {
      put(row(name, {{"phase", phases[random() % 4]}}));
    }
  }
  JobQuery all;
  all.limit = 1'000;
  std::map<std::string, std::size_t> counted;
  for (const JobRowPtr& one : table_.view(all, kNow).rows) ++counted[one->phase];
  EXPECT_EQ(table_.phases(), counted);
}

TEST(UiFilter, HoldsForEachOfItsWords) {
  const auto job =
      row("film-17", waits("Running", "PodRunning", "2026-07-01T13:50:00Z"),
          {{"queue", {{"name", "night"}}}, {"workerPool", {{"name", "gpu"}}}}, {{"team", "film"}});
  for (const char* const yes :
       {"", "phase:running", "phase:Pending,Running", "reason:podrunning", "queue:night",
        "pool:gpu", "ns:media", "label:team", "label:team=film", "age>30m", "age<2h", "age<1d",
        "age<1d6h", "since>5m", "film", "MEDIA/FILM", "film 17 phase:Running age>30m"}) {
    EXPECT_TRUE(is_in(yes, job)) << yes;
  }
  for (const char* const no :
       {"phase:Pending", "reason:Queued", "queue:nigh", "pool:cpu", "ns:med", "label:tea",
        "label:team=fil", "label:film", "age>2h", "age>1d", "since>1h", "film-18", "node:node-1",
        "phase:Running phase:Pending", "label:team label:other", "is:late"}) {
    EXPECT_FALSE(is_in(no, job)) << no;
  }
}

TEST(UiFilter, FindsJobsThatNobodyHasReadAndThoseThatAreStuck) {
  EXPECT_TRUE(is_in("phase:new", row("a")));
  EXPECT_FALSE(is_in("phase:new", row("a", {{"phase", "Pending"}})));
  EXPECT_TRUE(
      is_in("is:stalled", row("a", waits("Pending", "Queued", "2026-07-01T13:50:00Z", true))));
  EXPECT_TRUE(is_in("is:late", row("a", waits("Backoff", "RetryBackoff", "2026-07-01T13:50:00Z",
                                              false, "2026-07-01T13:59:00Z"))));
}

TEST(UiFilter, SaysWhichWordIsWrong) {
  for (const char* const wrong : {"phse:Running", "phase:", "age>soon", "age>d", "age>1d2",
                                  "age>1h2d", "name>1h", "is:nice"}) {
    const Result<JobFilter> filter = parse_job_filter(wrong);
    ASSERT_FALSE(filter.ok()) << wrong;
    EXPECT_THAT(filter.error().message, HasSubstr(wrong));
  }
  EXPECT_FALSE(parse_job_filter(std::string(2'000, 'x')).ok());
}

TEST(UiRow, IsCleanAndBounded) {
  const auto job = row(
      "a",
      {{"phase", "Running"},
       {"waiting", {{"reason", "PodRunning"}, {"message", "\x1b[2J" + std::string(5'000, 'x')}}}});
  EXPECT_LE(job->message.size(), kRowText);
  EXPECT_EQ(job->message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace holdfast::plugin
