#include "plugin/verbs/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "plugin/terminal/cells.h"
#include "tests/unit/plugin/situations.h"

namespace holdfast::plugin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<const Json*> jobs_of(const std::vector<std::string>& names) {
  std::vector<const Json*> jobs;
  for (const std::string& name : names) jobs.push_back(&situation(name).facts.job);
  return jobs;
}

std::vector<std::string> plain(const std::vector<std::string>& names) {
  return top_table(jobs_of(names), noon(), {});
}

TEST(PluginTop, TheWorstComesFirst) {
  EXPECT_THAT(plain({"finished-well", "runs-on-worker", "suspended", "finished-failed",
                     "waits-in-queue", "node-lost", "cut-off-running"}),
              ElementsAre(StartsWith("NAME "), StartsWith("ledger "), StartsWith("survivor "),
                          StartsWith("nightly "), StartsWith("film-17 "), StartsWith("paused "),
                          StartsWith("shot-4712 "), StartsWith("one-shot ")));
}

// What the operator has not acted on in time is worse than what it works on.
TEST(PluginTop, ALateJobComesBeforeOthers) {
  EXPECT_THAT(plain({"node-lost", "no-operator"}),
              ElementsAre(StartsWith("NAME "), StartsWith("forgotten "), StartsWith("survivor ")));
}

TEST(PluginTop, ARowSaysWhatIsGoingOn) {
  EXPECT_THAT(
      plain({"thousand-runs"}),
      ElementsAre("NAME  PHASE    WAITING             SINCE  OPEN  DONE      ATTEMPT  AGE",
                  "scan  Running  PodCreationRefused  2m     3     412/1000  512      30m"));
}

TEST(PluginTop, AllNamespacesAreNamed) {
  const auto lines = top_table(jobs_of({"suspended"}), noon(), {.with_namespace = true});
  EXPECT_THAT(lines, ElementsAre(StartsWith("NAMESPACE  NAME"), StartsWith("media      paused")));
}

TEST(PluginTop, TheWideTableSaysWhereAndWhy) {
  const auto lines = top_table(jobs_of({"node-lost"}), noon(), {.wide = true});
  EXPECT_THAT(lines.at(1), HasSubstr("node-2"));
  EXPECT_THAT(lines.at(1), HasSubstr("does not renew its Lease"));
}

TEST(PluginTop, ALiveTableFitsOntoTheScreen) {
  Json job = situation("image-pull").facts.job;
  std::vector<Json> jobs;
  for (int i = 0; i < 50; ++i) {
    job["metadata"]["name"] = "夜間-a-job-with-a-name-that-is-quite-long-" + std::to_string(i);
    job["metadata"]["namespace"] = "a-namespace-with-a-name-that-is-long";
    jobs.push_back(job);
  }
  std::vector<const Json*> pointers;
  for (const Json& one : jobs) pointers.push_back(&one);
  for (const bool wide : {false, true}) {
    for (const std::size_t width : {40U, 80U, 200U}) {
      const auto lines = top_table(
          pointers, noon(),
          {.with_namespace = true, .wide = wide, .live = true, .width = width, .height = 24});
      EXPECT_EQ(lines.size(), 24U);
      for (const std::string& line : lines) EXPECT_LE(cells(line), width) << line;
      EXPECT_THAT(lines.front(), StartsWith("50 jobs: 50 Running"));
      EXPECT_THAT(lines.back(), StartsWith("and 29 more"));
    }
  }
}

TEST(PluginTop, APlainTableIsNotCut) {
  Json job = situation("suspended").facts.job;
  job["metadata"]["name"] = std::string(63, 'x');
  EXPECT_THAT(top_table({&job}, noon(), {}).at(1), StartsWith(std::string(63, 'x') + " "));
}

TEST(PluginTop, NoJobsAreNoTable) { EXPECT_TRUE(top_table({}, noon(), {}).empty()); }

TEST(PluginTop, TheManualShowsThisTable) {
  std::ifstream file(std::string(GOLDEN_FOLDER) + "/../../../../docs/kubectl.md");
  std::stringstream manual;
  manual << file.rdbuf();
  std::string table;
  for (const std::string& line : plain({"cut-off-running", "thousand-runs", "node-lost",
                                        "finished-failed", "runs-on-worker"})) {
    table += line + "\n";
  }
  EXPECT_THAT(manual.str(), HasSubstr(table));
}

// A tenant must not be able to steer the terminal of whoever looks.
TEST(PluginTop, ControlCharactersAreGone) {
  Json job = situation("suspended").facts.job;
  job["status"]["waiting"]["reason"] = "a\x1b[2Jb";
  for (const std::string& line : top_table({&job}, noon(), {})) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::plugin
