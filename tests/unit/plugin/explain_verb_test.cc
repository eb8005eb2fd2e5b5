// explain finds the operator wherever it is, and says what it may not see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plugin/verbs/verbs.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/situations.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDead = "no replica of the operator is alive";

class PluginExplainOperator : public ::testing::Test {
 protected:
  PluginExplainOperator() {
    api_.time = noon();
    Json job = situation("back-off").facts.job;
    job["metadata"]["namespace"] = "default";
    job["metadata"]["name"] = "film-17";
    api_.objects[test::MemoryApi::key(kJobs, "default", "film-17")] = job;
  }

  void install_in(const std::string& namespace_, const std::string& renewed) {
    for (Json lease : situation("no-operator").facts.operator_leases) {
      lease["metadata"]["namespace"] = namespace_;
      lease["spec"]["renewTime"] = renewed;
      const std::string name = string_at(lease["metadata"], "name");
      api_.objects[test::MemoryApi::key(kLeases, namespace_, name)] = lease;
    }
  }
  void forbid(const std::string& namespace_) {
    Error error = make_error(ErrorCode::kForbidden, "leases is forbidden: cannot list");
    error.http_status = 403;
    api_.list_errors["leases/" + namespace_] = error;
  }

  // The page, with each of its texts on one line.
  std::string page(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"explain", "film-17"});
    terminal_.output.clear();
    const Result<Command> command = parse_command(words);
    EXPECT_TRUE(command.ok()) << command.error().message;
    EXPECT_EQ(explain(*command, api_, terminal_), kExitDone) << terminal_.errors;
    std::string text;
    for (const char c : terminal_.output) {
      if (c == '\n' || (c == ' ' && text.ends_with(' '))) {
        if (!text.ends_with(' ')) text += ' ';
      } else {
        text += c;
      }
    }
    return text;
  }

  static constexpr const char* kLongAgo = "2026-07-01T13:54:00.000000Z";
  static constexpr const char* kNow = "2026-07-01T13:59:58.000000Z";
  test::MemoryApi api_;
  test::TextTerminal terminal_;
};

TEST_F(PluginExplainOperator, IsFoundInAnyNamespace) {
  install_in("platform", kLongAgo);
  EXPECT_THAT(page(), HasSubstr(kDead));
  install_in("platform", kNow);
  EXPECT_THAT(page(), Not(HasSubstr("Operator")));
}

TEST_F(PluginExplainOperator, IsFoundInItsUsualNamespaceByWhoMayNotListAll) {
  forbid("");
  install_in("holdfast-system", kLongAgo);
  EXPECT_THAT(page(), HasSubstr(kDead));
}

TEST_F(PluginExplainOperator, IsFoundWhereTheUserSaysThatItIs) {
  forbid("");
  forbid("holdfast-system");
  install_in("platform", kLongAgo);
  EXPECT_THAT(page({"--operator-namespace", "platform"}), HasSubstr(kDead));
  ::setenv("HOLDFAST_OPERATOR_NAMESPACE", "platform", 1);
  EXPECT_THAT(page(), HasSubstr(kDead));
  ::unsetenv("HOLDFAST_OPERATOR_NAMESPACE");
}

TEST_F(PluginExplainOperator, AMissingRightIsSaid) {
  forbid("");
  forbid("holdfast-system");
  install_in("platform", kLongAgo);
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("you have no right to list Leases in holdfast-system"));
  EXPECT_THAT(text, HasSubstr("--operator-namespace"));
  EXPECT_THAT(text, Not(HasSubstr(kDead)));
  forbid("platform");
  EXPECT_THAT(page({"--operator-namespace", "platform"}),
              HasSubstr("you have no right to list Leases in platform"));
}

TEST_F(PluginExplainOperator, WhoMayNotListAllLearnsThatItIsNotInTheUsualNamespace) {
  forbid("");
  install_in("platform", kLongAgo);
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("there is no operator in holdfast-system"));
  EXPECT_THAT(text, HasSubstr("--operator-namespace"));
}

TEST_F(PluginExplainOperator, AClusterWithoutOneIsSaid) {
  EXPECT_THAT(page(),
              HasSubstr("no replica of the operator is alive: none has a Lease in this cluster"));
  EXPECT_THAT(page({"--operator-namespace", "platform"}),
              HasSubstr("none has a Lease in namespace platform"));
}

TEST_F(PluginExplainOperator, OneThatWasStoppedLeavesItsShardsAndIsGone) {
  install_in("platform", kNow);
  const std::string member = "holdfast-member-holdfast-0-abc";
  ASSERT_EQ(api_.objects.erase(test::MemoryApi::key(kLeases, "platform", member)), 1U);
  EXPECT_THAT(page(), HasSubstr("none has a Lease in this cluster"));
}

TEST_F(PluginExplainOperator, OneThatLivesAmongSeveralIsEnough) {
  install_in("platform", kLongAgo);
  install_in("holdfast-system", kNow);
  EXPECT_THAT(page(), Not(HasSubstr("Operator")));
  install_in("holdfast-system", kLongAgo);
  EXPECT_THAT(page(), HasSubstr(kDead));
}

TEST_F(PluginExplainOperator, AServerThatDoesNotAnswerIsNoDeadOperator) {
  api_.list_errors["leases/"] = make_error(ErrorCode::kTransient, "no answer");
  EXPECT_THAT(page(), Not(HasSubstr("Operator")));
}

// Only they say which runs are being stopped.
TEST_F(PluginExplainOperator, ThePodsOfAJobThatEndsAreReadAndOfNoOther) {
  page();
  EXPECT_THAT(api_.calls, Not(Contains(HasSubstr("list pods"))));
  const ExplainFacts& facts = situation("decided-open").facts;
  Json job = facts.job;
  job["metadata"]["namespace"] = "default";
  job["metadata"]["name"] = "film-17";
  api_.objects[test::MemoryApi::key(kJobs, "default", "film-17")] = job;
  for (const Json& pod : facts.pods) {
    const std::string name = string_at(at(pod, "metadata"), "name");
    api_.objects[test::MemoryApi::key(kPods, "default", name)] = pod;
  }
  EXPECT_THAT(page(), HasSubstr("Stopping run 4: pod sweep-5-x on node-1; run 6: "));
}

TEST_F(PluginExplainOperator, AJobThatHasEndedNeedsNone) {
  Json job = situation("finished-well").facts.job;
  job["metadata"]["namespace"] = "default";
  job["metadata"]["name"] = "film-17";
  api_.objects[test::MemoryApi::key(kJobs, "default", "film-17")] = job;
  EXPECT_THAT(page(), Not(HasSubstr("Operator")));
  EXPECT_THAT(api_.calls, Not(Contains(HasSubstr("list leases"))));
}

}  // namespace
}  // namespace holdfast::plugin
