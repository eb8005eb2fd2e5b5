// submit: at most one job for a key, whatever is lost or done at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/verbs/submit_key.h"
#include "plugin/verbs/verbs.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr const char* kJob =
    "apiVersion: holdfast.dev/v1alpha1\n"
    "kind: DurableJob\n"
    "metadata: {name: encode-7}\n"
    "spec: {backoffLimit: 3, template: {spec: {containers: [{name: main, image: busybox}]}}}\n";

class PluginSubmit : public ::testing::Test {
 protected:
  PluginSubmit() {
    terminal_.files["job.yaml"] = kJob;
    api_.defaults = {{"disruptionLimit", 50}, {"suspend", false}};
  }

  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "submit");
    const Result<Command> command = parse_command(words);
    EXPECT_TRUE(command.ok()) << command.error().message;
    terminal_.output.clear();
    terminal_.errors.clear();
    return submit(*command, api_, terminal_);
  }
  int run_with_key() { return run({"-f", "job.yaml", "--key", "invoice 7"}); }

  Json& stored() {
    return api_.objects[test::MemoryApi::key(kJobs, "default", name_of_key("invoice 7"))];
  }
  void change(const std::string& from, const std::string& to) {
    std::string& text = terminal_.files["job.yaml"];
    text.replace(text.find(from), from.size(), to);
  }

  test::MemoryApi api_;
  test::TextTerminal terminal_;
};

TEST_F(PluginSubmit, CreatesTheJobOfTheFile) {
  EXPECT_EQ(run({"-f", "job.yaml"}), kExitDone);
  EXPECT_EQ(terminal_.output, "durablejob.holdfast.dev/encode-7 created\n");
  EXPECT_EQ(api_.objects.count(test::MemoryApi::key(kJobs, "default", "encode-7")), 1U);
}

TEST_F(PluginSubmit, TheSameKeyAndSpecAnswersWithTheJobThatIsThere) {
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("created"));
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("is there already, submitted with this key"));
  EXPECT_EQ(api_.objects.size(), 1U);
}

TEST_F(PluginSubmit, TheTextOfTheSpecDoesNotMatter) {
  EXPECT_EQ(run_with_key(), kExitDone);
  terminal_.files["job.yaml"] =
      R"({"kind": "DurableJob", "apiVersion": "holdfast.dev/v1alpha1", "metadata": {"name": "other"},
          "spec": {"template": {"spec": {"containers": [{"image": "busybox", "name": "main"}]}},
                   "backoffLimit": 3, "queue": null}})";
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("is there already"));
}

TEST_F(PluginSubmit, ADefaultThatIsSpelledOutIsNoDifference) {
  EXPECT_EQ(run_with_key(), kExitDone);
  change("backoffLimit: 3", "backoffLimit: 3, disruptionLimit: 50");
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("is there already"));
}

TEST_F(PluginSubmit, ADefaultThatOnlyTheOperatorKnowsIsNoDifferenceEither) {
  EXPECT_EQ(run_with_key(), kExitDone);
  change("backoffLimit: 3", "backoffLimit: 3, completions: 1, parallelism: 1");
  EXPECT_EQ(run_with_key(), kExitDone) << terminal_.errors;
  // Also the other way round, and after a change.
  stored()["spec"].merge_patch({{"completions", 1}, {"parallelism", 1}, {"suspend", true}});
  change(", completions: 1", "");
  EXPECT_EQ(run_with_key(), kExitDone) << terminal_.errors;
}

TEST_F(PluginSubmit, ADefaultIsNoDifferenceToAJobWhoseHashSaysSomethingElse) {
  EXPECT_EQ(run_with_key(), kExitDone);
  stored()["metadata"]["annotations"][kHashAnnotation] = "sha256:of-another-version";
  change("backoffLimit: 3", "backoffLimit: 3, disruptionLimit: 50, completions: 1");
  EXPECT_EQ(run_with_key(), kExitDone) << terminal_.errors;
}

TEST_F(PluginSubmit, AnotherSpecIsRefusedAndTheDifferenceIsShownWithoutDefaults) {
  EXPECT_EQ(run_with_key(), kExitDone);
  change("backoffLimit: 3", "backoffLimit: 5");
  change("image: busybox", "image: alpine");
  EXPECT_EQ(run_with_key(), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("has another spec (2 fields)"));
  EXPECT_THAT(terminal_.errors, HasSubstr("\n  spec.backoffLimit: 3 there, 5 here\n"));
  EXPECT_THAT(terminal_.errors, HasSubstr("\n  spec.template.spec.containers[0].image: \"busybox\" "
                                          "there, \"alpine\" here\n"));
  EXPECT_THAT(terminal_.errors, Not(HasSubstr("disruptionLimit")));
  EXPECT_EQ(int_at(at(stored(), "spec"), "backoffLimit"), 3);
}

TEST_F(PluginSubmit, AJobThatWasSuspendedSinceIsStillTheOneOfTheKey) {
  EXPECT_EQ(run_with_key(), kExitDone);
  stored()["spec"]["suspend"] = true;
  EXPECT_EQ(run_with_key(), kExitDone);
}

TEST_F(PluginSubmit, AJobThatIsBeingDeletedIsSaid) {
  EXPECT_EQ(run_with_key(), kExitDone);
  stored()["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  EXPECT_EQ(run_with_key(), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("is being deleted; submit again once it is gone"));
}

TEST_F(PluginSubmit, OnceTheJobIsGoneTheKeyIsFree) {
  EXPECT_EQ(run_with_key(), kExitDone);
  api_.objects.clear();
  change("backoffLimit: 3", "backoffLimit: 5");
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("created"));
}

TEST_F(PluginSubmit, AJobThatGoesBetweenCreateAndReadIsCreatedAgain) {
  Error exists = make_error(ErrorCode::kAlreadyExists, "exists");
  api_.create_errors = {exists};
  EXPECT_EQ(run_with_key(), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("created"));
}

TEST_F(PluginSubmit, ALostAnswerIsAskedForAgain) {
  Error lost = make_error(ErrorCode::kTransient, "no complete answer in time");
  lost.maybe_applied = true;
  for (const bool applied : {true, false}) {
    api_.objects.clear();
    api_.create_errors = {lost};
    api_.applies_lost_creates = applied;
    EXPECT_EQ(run_with_key(), kExitDone);
    EXPECT_EQ(api_.objects.size(), 1U);
  }
  // Without a key nobody could know whose job it is.
  api_.objects.clear();
  api_.create_errors = {lost};
  EXPECT_EQ(run({"-f", "job.yaml"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("the job may have been created"));
}

TEST_F(PluginSubmit, AForeignJobOfTheNameIsNotTaken) {
  stored() = Json{{"metadata", {{"name", "x"}}}, {"spec", Json::object()}};
  EXPECT_EQ(run_with_key(), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("was not submitted with this key"));
}

TEST_F(PluginSubmit, WhatIsNoJobIsRefusedInOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "job.yaml is empty; it must hold one object"},
      {"a: [1\n", "job.yaml: it is not valid YAML at line 2, column 1; correct it there"},
      {"- 1\n", "this is no object; a DurableJob starts with apiVersion and kind"},
      {std::string(kJob) + "---\n" + kJob,
       "job.yaml holds 2 objects; give one object for each call of submit"},
      {"apiVersion: batch/v1\nkind: Job\n",
       "this is a batch/v1 Job; turn it into a DurableJob: kubectl holdfast convert -f FILE"},
      {"apiVersion: v1\nkind: Pod\n",
       "this is no DurableJob but 'Pod' of 'v1'; set apiVersion: holdfast.dev/v1alpha1 and kind: "
       "DurableJob"},
      {"apiVersion: holdfast.dev/v1alpha1\nkind: DurableJob\nmetadata: {name: x}\n",
       "the job has no spec; add one with a template"},
      {"apiVersion: holdfast.dev/v1alpha1\nkind: DurableJob\nspec: {}\n",
       "the job has no name; set metadata.name, or give --key"},
  };
  for (const auto& [text, line] : cases) {
    terminal_.files["job.yaml"] = text;
    EXPECT_EQ(run({"-f", "job.yaml"}), kExitRefused) << text;
    EXPECT_EQ(terminal_.errors, "kubectl holdfast submit: " + line + "\n");
  }
  EXPECT_EQ(run({"-f", "none.yaml"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("there is no file none.yaml"));
  EXPECT_EQ(run({}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("which file?"));
}

TEST_F(PluginSubmit, EmptyDocumentsDoNotCount) {
  terminal_.files["job.yaml"] = "---\n# none\n---\n" + std::string(kJob) + "---\n";
  EXPECT_EQ(run({"-f", "job.yaml"}), kExitDone) << terminal_.errors;
}

TEST_F(PluginSubmit, TwoNamespacesAreRefused) {
  change("{name: encode-7}", "{name: encode-7, namespace: media}");
  EXPECT_EQ(run({"-f", "job.yaml", "-n", "web"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("the file names the namespace media, and -n web"));
  EXPECT_EQ(run({"-f", "job.yaml"}), kExitDone);
  EXPECT_EQ(api_.objects.count(test::MemoryApi::key(kJobs, "media", "encode-7")), 1U);
}

TEST(PluginKey, TheNameIsALabelThatShowsTheKey) {
  for (const char* key : {"invoice 7", "Ünïcode", "", "---", "a/b/c", "UPPER",
                          "a-very-long-key-that-has-more-than-forty-characters-in-it"}) {
    const std::string name = name_of_key(key);
    EXPECT_LE(name.size(), 51U);
    EXPECT_THAT(name, MatchesRegex("[a-z0-9]([-a-z0-9]*[a-z0-9])?")) << key;
    EXPECT_EQ(trial_name(name, "h").size(), name.size());
    EXPECT_NE(trial_name(name, "h"), name);
  }
  EXPECT_THAT(name_of_key("invoice 7"), MatchesRegex("invoice-7-[0-9a-f]{10}"));
  EXPECT_NE(name_of_key("invoice 7"), name_of_key("invoice-7"));
}

TEST(PluginKey, TheNameOfAKeyNeverChanges) {
  // Another name would submit again what was submitted before an upgrade.
  EXPECT_EQ(name_of_key("invoice 7"), "invoice-7-aa8dcff028");
  EXPECT_EQ(spec_hash({{"a", 1}}).substr(0, 23), "sha256:015abd7f5cc57a2d");
}

}  // namespace
}  // namespace holdfast::plugin
