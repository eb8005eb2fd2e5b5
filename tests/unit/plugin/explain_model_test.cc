// The model of `explain`: what its JSON has, and that terminal, JSON and HTML draw the same.
#include "plugin/explain/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "api/docs_link.h"
#include "plugin/explain/html.h"
#include "tests/unit/plugin/situations.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// The golden texts are of no version.
std::string of_no_version(std::string text) {
  for (std::size_t at = 0; (at = text.find(api::kDocs, at)) != std::string::npos;) {
    text.replace(at, api::kDocs.size(), "DOCS");
  }
  return text;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Model model_of(const std::string& name) { return plugin::model_of(situation(name).facts, noon()); }

std::string page_of(const Model& model, Time now = noon()) {
  std::string text;
  for (const std::string& line : draw(model, now, {200, 0, true})) text += line + "\n";
  return text;
}

class ExplainModel : public testing::TestWithParam<std::string> {};

// Programs read this JSON. To accept a change of it:
// HOLDFAST_WRITE_GOLDEN=1 plugin_test --gtest_filter='*Golden*', and read the difference.
TEST_P(ExplainModel, IsTheGoldenJson) {
  const std::string path = std::string(GOLDEN_FOLDER) + "/" + GetParam() + ".json";
  const std::string text = of_no_version(to_json(model_of(GetParam()), noon()).dump(2)) + "\n";
  if (std::getenv("HOLDFAST_WRITE_GOLDEN")) std::ofstream(path) << text;
  EXPECT_EQ(text, read(path));
}

// Each fact is said in words on the page, in the JSON, and in the file.
TEST_P(ExplainModel, IsDrawnWhole) {
  const Model model = model_of(GetParam());
  const Json json = to_json(model, noon());
  const std::string html = html_of(model, noon());
  const std::string page = page_of(model);
  ASSERT_FALSE(model.facts.empty());
  EXPECT_EQ(json["facts"].size(), model.facts.size());
  for (const Fact& fact : model.facts) {
    EXPECT_THAT(page, HasSubstr("  " + fact.label)) << fact.name;
    EXPECT_EQ(string_at(json[fact.name], "text"), fact.text.at(noon()));
    EXPECT_THAT(html, HasSubstr("<dt>" + fact.label + "</dt>"));
  }
  EXPECT_EQ(json["attempts"].size(), model.attempts.size());
  for (const std::string& command : model.advice.commands) {
    EXPECT_THAT(page, HasSubstr(command.substr(0, 40)));
  }
}

TEST_P(ExplainModel, MakesAFileThatNeedsNoNetworkAndRunsNoScript) {
  const std::string html = html_of(model_of(GetParam()), noon());
  for (const char* const bad : {"<script", "src=", "url(", "@import", "<link", "javascript:"}) {
    EXPECT_THAT(html, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Situation& one : situations()) names.push_back(one.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Situations, ExplainModel, testing::ValuesIn(names()), [](const auto& one) {
  std::string name = one.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

// The ten jobs that people ask about most: the first sentence says the cause, the next what to do.
TEST(ExplainSickJobs, SayTheirCauseAndWhatToDoFirst) {
  const struct {
    const char* name;
    const char* cause;
    const char* act;
  } kSick[] = {
      {"unschedulable", "no node fits the pod: 0/12 nodes are available: 3 Insufficient nvidia",
       "Compare what the pod asks for with the nodes"},
      {"image-pull", "a node cannot get the container's image", "Check the image's name and tag"},
      {"thousand-runs", "exceeded quota", "A quota of the namespace is used up"},
      {"policy-refused", "ValidatingAdmissionPolicy 'images'", "rejects the pod: suspend the job"},
      {"waits-in-queue", "it waits for a permit of its queue", "as many jobs of its key run"},
      {"node-lost", "node node-2 does not renew its Lease", "the next attempt starts elsewhere"},
      {"stuck-terminating", "pod mix-2-x2k9d on node node-2 was deleted and has not ended",
       "is given up when its time is over"},
      {"hung-progress", "the program lives and reports no progress", "Does it hang?"},
      {"finished-failed", "more attempts failed than backoffLimit forgives", "Read the log"},
      {"warm-worker-awaited", "no worker of its pool has a free slot", "Its workers cannot start"},
  };
  for (const auto& sick : kSick) {
    const Model model = model_of(sick.name);
    EXPECT_THAT(model.summary.at(noon()), HasSubstr(sick.cause)) << sick.name;
    EXPECT_THAT(model.advice.text, HasSubstr(sick.act)) << sick.name;
  }
}

TEST(ExplainModelClock, MovesWithoutAnotherRead) {
  const Model model = model_of("back-off");
  EXPECT_NE(page_of(model), page_of(model, noon() + seconds(3)));
  const Json then = to_json(model, noon());
  const Json later = to_json(model, noon() + seconds(3));
  EXPECT_NE(then["by"]["text"], later["by"]["text"]);
  EXPECT_EQ(then["by"]["parts"], later["by"]["parts"]);
}

// A name or a last word that is markup stays text.
TEST(ExplainHtml, EscapesWhatTheClusterSays) {
  ExplainFacts facts = situation("finished-failed").facts;
  const std::string markup = "<img src=x onerror=alert(1)>\"'&";
  facts.job["status"]["history"].back()["message"] = markup;
  facts.job["spec"]["description"] = markup;
  const std::string html = html_of(plugin::model_of(facts, noon()), noon());
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
}

// Wherever the words of a program stand, they are gone.
TEST(ExplainNoLogs, LeavesOutWhatProgramsSaid) {
  ExplainFacts facts = situation("back-off").facts;
  const std::string secret = "password=hunter2";
  for (Json& end : facts.job["status"]["history"]) end["message"] = "cannot log in\n" + secret;
  facts.job["status"]["waiting"]["message"] =
      "attempt 2 ended (Error): container main ended with exit code 1: cannot log in " + secret;
  Model model = plugin::model_of(facts, noon());
  ASSERT_THAT(to_json(model, noon()).dump(), HasSubstr(secret));
  leave_words_out(model);
  EXPECT_THAT(to_json(model, noon()).dump(), Not(HasSubstr("cannot log in")));
  EXPECT_THAT(html_of(model, noon()), Not(HasSubstr(secret)));
  EXPECT_THAT(page_of(model), Not(HasSubstr(secret)));
  EXPECT_THAT(page_of(model), HasSubstr("ended with exit code 1"));
}

TEST(ExplainHtml, DrawsAHundredThousandRunsAsAThousandSquares) {
  ExplainFacts facts = situation("thousand-runs").facts;
  facts.job["spec"]["completions"] = 100'000;
  facts.job["spec"]["parallelism"] = 1'000;
  const std::string html = html_of(plugin::model_of(facts, noon()), noon());
  EXPECT_THAT(html, HasSubstr("Each square is 100 runs"));
  EXPECT_LT(html.size(), 120'000U);
}

}  // namespace
}  // namespace holdfast::plugin
