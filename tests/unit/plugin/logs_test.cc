// logs: which pod an attempt ran in, and which lines of a worker's log are its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/verbs/attempt_place.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;

Json job() {
  return {{"metadata", {{"name", "sweep"}, {"namespace", "default"}, {"uid", "u1"}}},
          {"status",
           {{"phase", "Running"},
            {"attempt", 14},
            {"stage", "verify"},
            {"runs",
             {{{"index", 3}, {"attempt", 14}, {"podName", "sweep-14"}},
              {{"index", 5},
               {"attempt", 13},
               {"workerName", "worker-a"},
               {"startTime", "2026-01-02T03:04:05Z"}}}},
            {"history",
             {{{"index", 3},
               {"attempt", 11},
               {"podName", "sweep-11"},
               {"stage", "main"},
               {"outcome", "Failed"},
               {"reason", "exit code 3"}},
              {{"index", 4},
               {"attempt", 12},
               {"podName", "sweep-12"},
               {"stage", "verify"},
               {"outcome", "Succeeded"}}}}}}};
}

AttemptPlace found(const AttemptChoice& choice, const std::vector<Json>& pods = {}) {
  const Result<AttemptPlace> place = find_attempt(job(), pods, choice);
  EXPECT_TRUE(place.ok()) << place.error().message;
  return place.ok() ? *place : AttemptPlace{};
}

TEST(PluginLogs, WithoutAChoiceItIsTheLastAttempt) { EXPECT_EQ(found({}).pod, "sweep-14"); }

TEST(PluginLogs, AnAttemptAnIndexOrAStageIsChosen) {
  EXPECT_EQ(found({.attempt = 12, .index = {}, .stage = ""}).pod, "sweep-12");
  EXPECT_EQ(found({.attempt = {}, .index = 3, .stage = ""}).pod, "sweep-14");
  EXPECT_EQ(found({.attempt = {}, .index = 3, .stage = "main"}).pod, "sweep-11");
  EXPECT_EQ(found({.attempt = 11, .index = {}, .stage = ""}).end, "Failed: exit code 3");
}

TEST(PluginLogs, AWarmWorkersPodIsTheAttemptsPlace) {
  const AttemptPlace place = found({.attempt = 13, .index = {}, .stage = ""});
  EXPECT_TRUE(place.is_worker);
  EXPECT_EQ(place.pod, "worker-a");
  EXPECT_TRUE(place.start.has_value());
}

TEST(PluginLogs, WhatTheStatusHasForgottenThePodsStillKnow) {
  const Json pod = {{"metadata",
                     {{"name", "sweep-2"},
                      {"labels", {{"holdfast.dev/attempt", "2"}}},
                      {"annotations", {{"batch.kubernetes.io/job-completion-index", "8"}}}}}};
  EXPECT_EQ(found({.attempt = 2, .index = {}, .stage = ""}, {pod}).pod, "sweep-2");
  EXPECT_EQ(found({.attempt = {}, .index = 8, .stage = ""}, {pod}).pod, "sweep-2");
}

TEST(PluginLogs, ARunWhosePodIsJustBeingCreatedHasItsNameToBe) {
  Json starting = job();
  starting["status"]["runs"] = {{{"index", 0}, {"attempt", 15}}};
  const Result<AttemptPlace> place = find_attempt(starting, {}, {});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->pod, reconciler::pod_name("sweep", "u1", 15));
}

TEST(PluginLogs, WhatIsNotThereIsSaidWithWhatIs) {
  const Result<AttemptPlace> none =
      find_attempt(job(), {}, {.attempt = 99, .index = {}, .stage = ""});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("nothing is known of an attempt 99"));
  EXPECT_THAT(none.error().message, HasSubstr("has had attempts 1 to 14"));
  const auto of_stage = [](const Json& job) {
    return find_attempt(job, {}, {.attempt = {}, .index = {}, .stage = "nope"}).error().message;
  };
  EXPECT_THAT(of_stage(job()), HasSubstr("has no stage nope: it has no stages"));
  Json staged = job();
  staged["status"]["stages"] = {{{"name", "main"}}, {{"name", "verify"}}};
  EXPECT_THAT(of_stage(staged), HasSubstr("has no stage nope; its stages are main, verify"));
  const Json fresh = {{"metadata", {{"name", "new"}}}};
  const Result<AttemptPlace> not_yet = find_attempt(fresh, {}, {});
  ASSERT_FALSE(not_yet.ok());
  EXPECT_THAT(not_yet.error().message, HasSubstr("has no attempt yet, it is Pending"));
}

TEST(PluginLogs, OfAWorkersLogOnlyTheAttemptsLinesAreShown) {
  const std::string log =
      "agent: ready\n[sweep 13] one\n[sweep 1] other attempt\n[sweeper 13] other job\n"
      "[sweep 13] \n[sweep 13] [x] two\n[sweep 13]no";
  EXPECT_EQ(lines_of_attempt(log, "sweep", 13), "one\n\n[x] two\n");
}

}  // namespace
}  // namespace holdfast::plugin
