#include "plugin/explain/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "api/docs_link.h"
#include "plugin/explain/outlook.h"
#include "plugin/terminal/cells.h"
#include "reconciler/shards.h"
#include "tests/unit/plugin/situations.h"

namespace holdfast::plugin {
namespace {

std::string page_of(const Situation& situation, const Page& page = {}) {
  std::string text;
  for (const std::string& line : explain(situation.facts, noon(), page)) text += line + "\n";
  return text;
}

// The golden texts are of no version.
std::string of_no_version(std::string text) {
  const std::size_t docs = text.find(api::kDocs);
  if (docs != std::string::npos) text.replace(docs, api::kDocs.size(), "DOCS");
  return text;
}

class Explain : public testing::TestWithParam<std::string> {};

// A change of the page shows as a change of these texts. To accept it:
// HOLDFAST_WRITE_GOLDEN=1 plugin_test --gtest_filter='*Golden*', and read the difference.
TEST_P(Explain, SaysTheGoldenText) {
  const std::string path = std::string(GOLDEN_FOLDER) + "/" + GetParam() + ".txt";
  const std::string text = of_no_version(page_of(situation(GetParam())));
  if (std::getenv("HOLDFAST_WRITE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str());
}

TEST_P(Explain, FitsOntoOneScreen) {
  for (const bool unicode : {true, false}) {
    const auto lines = explain(situation(GetParam()).facts, noon(), {80, 23, unicode});
    EXPECT_LE(lines.size(), 23U);
    for (const std::string& line : lines) EXPECT_LE(cells(line), 80U) << line;
  }
}

TEST_P(Explain, IsAsciiIfAsked) {
  const std::string text = page_of(situation(GetParam()), {80, 23, false});
  for (const char character : text) {
    EXPECT_TRUE(character == '\n' || (character >= ' ' && character <= '~')) << text;
  }
}

TEST_P(Explain, EndsWithTheLinkOfItsReason) {
  const auto& facts = situation(GetParam()).facts;
  const std::string last = explain(facts, noon(), {}).back();
  EXPECT_TRUE(last.starts_with("More:   " + std::string(api::kDocs) + "/reasons.html#")) << last;
  EXPECT_FALSE(last.ends_with("#")) << last;
}

TEST(ExplainLink, ANarrowPageHasNone) {
  const auto& facts = situation("back-off").facts;
  for (const std::string& line : explain(facts, noon(), {60, 23, true})) {
    EXPECT_FALSE(line.starts_with("More:")) << line;
  }
}

TEST_P(Explain, SaysWhatAPersonCanDo) {
  EXPECT_NE(page_of(situation(GetParam())).find("You can"), std::string::npos);
}

// Whatever is missing from the objects, nothing breaks.
TEST_P(Explain, ReadsObjectsWithAnyMemberMissing) {
  const auto& all = situation(GetParam()).facts;
  const std::function<void(const ExplainFacts&, Json::json_pointer)> without =
      [&](const ExplainFacts& facts, const Json::json_pointer& at_pointer) {
        const Json& whole = all.job[at_pointer];
        if (!whole.is_structured()) return;
        for (const auto& [key, value] : whole.items()) {
          ExplainFacts fewer = facts;
          Json& part = fewer.job[at_pointer];
          if (part.is_object()) {
            part[key] = 7;
            explain(fewer, noon(), {});
            part.erase(key);
            explain(fewer, noon(), {});
          }
          without(facts, whole.is_array() ? at_pointer / std::stoul(key) : at_pointer / key);
        }
      };
  without(all, Json::json_pointer());
}

// Once the outcome is decided, and once the spec or a deadline ends the wait, what the status says
// of that wait is no promise any more.
TEST_P(Explain, PromisesNoAttemptAndNoWaitThatWillNotBe) {
  const ExplainFacts& facts = situation(GetParam()).facts;
  const std::string text = page_of(situation(GetParam()), {80, 0, true});
  for (const char* const words : {"waiting.deadline", "next attempt just now"}) {
    EXPECT_EQ(text.find(words), std::string::npos) << words << '\n' << text;
  }
  const JobText job = read_job(facts.job);
  const Outlook outlook = outlook_of(facts.job, job, noon());
  if (outlook == Outlook::kNextAttempt || job.has_ended()) return;
  for (const char* const words :
       {"attempt 4 starts", "in back-off", "next attempt in", "next attempt due", "back-off ends",
        "waits its back-off", " next  "}) {
    EXPECT_EQ(text.find(words), std::string::npos) << words << '\n' << text;
  }
  if (outlook == Outlook::kSuspended) return;
  EXPECT_EQ(text.find("no time limit"), std::string::npos) << text;
}

// A long name must not hide the phase.
TEST(ExplainTitle, ALongNameHasALineOfItsOwn) {
  ExplainFacts facts = situation("back-off").facts;
  facts.job["metadata"]["name"] = std::string(63, 'n');
  facts.job["metadata"]["namespace"] = std::string(63, 's');
  const auto lines = explain(facts, noon(), {});
  EXPECT_EQ(lines[0] + lines[1], std::string(63, 's') + "/" + std::string(63, 'n'));
  EXPECT_EQ(lines[2], "Backoff  created 30m ago");
}

// Without a limit of height no text is cut.
TEST(ExplainWide, ShowsEverything) {
  ExplainFacts facts = situation("back-off").facts;
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word" + std::to_string(i) + " ";
  facts.job["status"]["waiting"]["message"] = words;
  std::string text;
  for (const std::string& line : explain(facts, noon(), {80, 0, true})) text += line + "\n";
  EXPECT_NE(text.find("word199"), std::string::npos);
  EXPECT_NE(text.find("1 Failed"), std::string::npos);
}

// The reason of a failure is in the last lines of a log, and the page has room for few.
TEST(ExplainTexts, TheLastWordsOfAProgramEndWithItsLastLine) {
  ExplainFacts facts = situation("back-off").facts;
  std::string log = "container main ended with exit code 1\nTraceback (most recent call last):\n";
  for (int i = 0; i < 40; ++i) log += "  File \"encode.py\", line " + std::to_string(i) + "\n";
  facts.job["status"]["history"][2]["message"] = log + "FileNotFoundError: film-17.mov";
  const auto lines = explain(facts, noon(), {80, 23, true});
  EXPECT_LE(lines.size(), 23U);
  const auto has = [](const std::vector<std::string>& page, const std::string& line) {
    return std::count(page.begin(), page.end(), std::string(11, ' ') + line);
  };
  EXPECT_EQ(has(lines, "container main ended with exit code 1"), 1);
  EXPECT_EQ(has(lines, "FileNotFoundError: film-17.mov"), 1);
  EXPECT_EQ(has(explain(facts, noon(), {80, 0, true}), "Traceback (most recent call last):"), 1);
}

// No priority helps where nothing starts.
TEST(ExplainAdvice, AHeldQueueIsToBeLetGo) {
  ExplainFacts facts = situation("waits-in-queue").facts;
  facts.queue["spec"]["hold"] = true;
  std::string text;
  for (const std::string& line : explain(facts, noon(), {})) text += line + "\n";
  EXPECT_NE(text.find("kubectl patch jq encode -n media --type=merge"), std::string::npos) << text;
  EXPECT_EQ(text.find("priority"), std::string::npos) << text;
}

// The page has a link of its own.
TEST(ExplainTexts, WordsOfAnEventComeWithoutItsLink) {
  ExplainFacts facts = situation("back-off").facts;
  const auto without = explain(facts, noon(), {});
  const std::string note = facts.events[0]["note"];
  facts.events[0]["note"] = api::with_reason_link(note, "AttemptFailed", 1024);
  EXPECT_NE(facts.events[0]["note"], note);
  EXPECT_EQ(explain(facts, noon(), {}), without);
}

// What a tenant wrote must not steer the terminal.
TEST(ExplainTexts, HaveNoControlCharacters) {
  ExplainFacts facts = situation("back-off").facts;
  facts.job["status"]["waiting"]["message"] = "a\x1b[2Jb\nc";
  facts.job["status"]["history"][2]["nodeName"] = "n\x1b]0;title\x07";
  facts.events[0]["note"] = "attempt 3 ended (Error): \x1b[31mred";
  for (const std::string& line : explain(facts, noon(), {})) {
    for (const char character : line) EXPECT_FALSE(character == '\x1b' || character == '\n');
  }
}

// People compare the page of the manual with theirs: in a fence, or indented.
TEST(ExplainInTheManual, IsWhatExplainSays) {
  std::ifstream file(std::string(GOLDEN_FOLDER) + "/../../../../docs/kubectl.md");
  std::stringstream manual;
  manual << file.rdbuf();
  for (const char* const name : {"back-off", "waits-in-queue"}) {
    std::string page;
    for (const std::string& line : explain(situation(name).facts, noon(), {})) {
      if (line.starts_with("More:")) break;
      page += line + "\n";
    }
    EXPECT_NE(manual.str().find(page), std::string::npos) << name << ":\n" << page;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Situation& one : situations()) names.push_back(one.name);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The late job of a situation, in an operator with eight shards: the first replica has this one,
// and the second one has the others.
ExplainFacts in_eight_shards(int of_first) {
  ExplainFacts facts = situation("slow-operator").facts;
  const Json member = facts.operator_leases.at(0);
  facts.operator_leases.clear();
  for (const char* const replica : {"first", "second"}) {
    Json lease = member;
    lease["metadata"]["annotations"]["holdfast.dev/shards"] = "8";
    lease["metadata"]["name"] = std::string("holdfast-member-") + replica;
    lease["spec"]["holderIdentity"] = std::string(replica) + "-abc";
    facts.operator_leases.push_back(lease);
  }
  for (int shard = 0; shard < 8; ++shard) {
    facts.operator_leases.push_back(
        {{"metadata",
          {{"name", "holdfast-shard-" + std::to_string(shard)},
           {"namespace", "holdfast-system"},
           {"labels", {{"holdfast.dev/lease", "shard"}}}}},
         {"spec", {{"holderIdentity", shard == of_first ? "first-abc" : "second-abc"}}}});
  }
  return facts;
}

TEST(ExplainOperator, AJobOfTheLaneBelongsToTheReplicaOfItsLabel) {
  const auto names_first = [](const ExplainFacts& facts) {
    return page_of({"", facts}).find("Replica first-abc") != std::string::npos;
  };
  const std::string uid = string_at(at(situation("slow-operator").facts.job, "metadata"), "uid");
  const int by_uid = reconciler::shard_of(uid, 8);
  const int labelled = (by_uid + 3) % 8;
  ExplainFacts facts = in_eight_shards(labelled);
  Json& metadata = facts.job["metadata"];
  EXPECT_FALSE(names_first(facts)) << "the UID decides";
  metadata["labels"]["holdfast.dev/shard"] = std::to_string(labelled) + "-of-8";
  EXPECT_FALSE(names_first(facts)) << "anybody may write the label into a job of his own";
  metadata["annotations"]["holdfast.dev/batch-job"] = "a-b";
  EXPECT_TRUE(names_first(facts));
  metadata["labels"]["holdfast.dev/shard"] = std::to_string(labelled) + "-of-16";
  EXPECT_FALSE(names_first(facts)) << "of an operator that had another number of shards";
}

INSTANTIATE_TEST_SUITE_P(Situations, Explain, testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace holdfast::plugin
