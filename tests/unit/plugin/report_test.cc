// report: what the operator would have freed, from what it wrote down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/verbs/verbs.h"
#include "reconciler/rescue/journal_text.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Resource kConfigMaps{"/api/v1", "configmaps", "ConfigMap", "configmap"};

class PluginReport : public ::testing::Test {
 protected:
  PluginReport() { api_.time = Time(hours(500'000)); }
  void write_down(const std::string& pod, Duration ago, std::optional<Duration> ended = {},
                  std::optional<Duration> returned = {}, const std::string& stays = "") {
    reconciler::JournalEntry entry;
    entry.namespace_ = "media";
    entry.pod = entry.uid = pod;
    entry.node = "node-1";
    entry.controller = "Job/night";
    entry.due = api_.time - ago;
    entry.silent_since = entry.due - seconds(61);
    if (ended) entry.ended = entry.due + *ended;
    if (returned) entry.returned = entry.due + *returned;
    entry.stays = stays;
    journal_.write_down(entry);
  }
  int run(std::vector<std::string> words, const std::string& namespace_ = "holdfast-system") {
    api_.objects[test::MemoryApi::key(kConfigMaps, namespace_, reconciler::kJournalName)] = {
        {"data",
         {{reconciler::kJournalKey, reconciler::encode_journal(journal_)},
          {reconciler::kSinceKey, format_time(api_.time - hours(3))}}}};
    return run_as_it_is(std::move(words));
  }
  void lease(const std::string& holder, Duration renewed_ago) {
    api_.objects[test::MemoryApi::key(kLeases, "holdfast-system", reconciler::kObserverLease)] = {
        {"spec",
         {{"holderIdentity", holder}, {"renewTime", format_time(api_.time - renewed_ago)}}}};
  }
  int run_as_it_is(std::vector<std::string> words) {
    words.insert(words.begin(), "report");
    const Result<Command> command = parse_command(words);
    EXPECT_TRUE(command.ok()) << command.error().message;
    return function_of(command->verb)(*command, api_, terminal_);
  }

  reconciler::Journal journal_;
  test::MemoryApi api_;
  test::TextTerminal terminal_;
};

TEST_F(PluginReport, EachPodHasItsTimesAndWhatBecameOfIt) {
  write_down("gone-1", hours(2), seconds(299));
  write_down("back-2", hours(1), {}, seconds(10));
  write_down("here-3", minutes(1));
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("media      gone-1  Job/night   node-1  6m   "));
  EXPECT_THAT(terminal_.output, HasSubstr("1m1s           ended\n"));
  EXPECT_THAT(terminal_.output, HasSubstr("1m1s           went on\n"));
  EXPECT_THAT(terminal_.output, HasSubstr("1m1s           hangs\n"));
  EXPECT_THAT(terminal_.output,
              HasSubstr("Observed for 3h. 2 pods hung on silent nodes for 8m1s in all; with "
                        "Holdfast for 2m2s. 1 pod would have been freed although"));
}

TEST_F(PluginReport, APodThatWouldHaveStayedIsShownWithTheReasonAndCountedByItself) {
  write_down("data-1", hours(1), {}, {}, "Volumes");
  write_down("data-2", hours(1), {}, seconds(10), "Volumes");
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("stays: Volumes  hangs\n"));
  EXPECT_THAT(terminal_.output, HasSubstr("No pod would have been freed. 2 pods on silent nodes "
                                          "would have stayed as they are: Volumes 2."));
  terminal_.output.clear();
  write_down("gone-1", hours(2), seconds(299));
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("1 pod hung on silent nodes"));
  EXPECT_THAT(terminal_.output, HasSubstr("although the pod went on. 2 pods on silent"));
}

TEST_F(PluginReport, APodThatStillHangsIsShownHoweverOldItIs) {
  write_down("old", hours(30));
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("node-1  1d6h  1m1s           hangs"));
}

TEST_F(PluginReport, ItSaysSinceWhenNobodyObserves) {
  lease("replica-1", seconds(3));
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, Not(HasSubstr("Nobody")));
  for (const char* const holder : {"replica-1", ""}) {
    lease(holder, hours(1));
    EXPECT_EQ(run({}), kExitDone);
    EXPECT_THAT(terminal_.output, HasSubstr("Observed for 2h. Nobody has observed since"));
    terminal_.output.clear();
  }
}

TEST_F(PluginReport, WhatWasOverBeforeIsLeftOut) {
  write_down("old", hours(2), minutes(1));
  EXPECT_EQ(run({"--since", "1h"}), kExitDone);
  EXPECT_EQ(terminal_.output, "Observed for 1h. No pod would have been freed.\n");
}

TEST_F(PluginReport, AsJsonItHasTheSumsAndTheEntries) {
  write_down("gone-1", hours(2), seconds(299));
  write_down("data-1", hours(1), {}, {}, "Volumes");
  lease("", hours(1));
  EXPECT_EQ(run({"-o", "json"}), kExitDone);
  const Json report = *parse_json(terminal_.output);
  EXPECT_EQ(report["pods"], 1);
  EXPECT_EQ(report["hungSeconds"], 360);
  EXPECT_EQ(report["withHoldfastSeconds"], 61);
  EXPECT_EQ(report["falseVerdicts"], 0);
  EXPECT_EQ(report["observedSince"], format_time(api_.time - hours(3)));
  EXPECT_EQ(report["entries"][0]["pod"], "gone-1");
  EXPECT_EQ(report["entries"][0]["then"], "ended");
  EXPECT_EQ(report["entries"][0]["hungSeconds"], 360);
  EXPECT_EQ(report["entries"][0]["withHoldfastSeconds"], 61);
  EXPECT_EQ(report["entries"][1]["stays"], "Volumes");
  EXPECT_FALSE(report["entries"][1].contains("withHoldfastSeconds"));
  EXPECT_EQ(report["stay"], (Json{{"Volumes", 1}}));
  EXPECT_EQ(report["observedUntil"], format_time(api_.time - hours(1)));
}

TEST_F(PluginReport, ItFindsAnotherNamespace) {
  EXPECT_EQ(run({"--operator-namespace", "ops"}, "ops"), kExitDone);
}

TEST_F(PluginReport, WithoutAnObserverItSaysWhatToDo) {
  EXPECT_EQ(run_as_it_is({}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("rescue.mode=observe"));
}

TEST_F(PluginReport, NoNameOfAPodChangesTheTerminal) {
  write_down("\x1b[2J", minutes(1));
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_THAT(terminal_.output, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace holdfast::plugin
