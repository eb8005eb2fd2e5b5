// Jobs with stages between JSON and the reconciler's types, and what a stage's pod knows.
#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/injection/pod_body.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

using reconciler::StagePhase;
using std::chrono::seconds;

Json staged_json() {
  return Json::parse(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"name": "prove", "namespace": "media", "uid": "u-1", "resourceVersion": "17"},
    "spec": {
      "activeDeadlineSeconds": 300, "ttlSecondsAfterFinished": 7,
      "template": {"spec": {"containers": [{"name": "main-worker", "image": "a"}]}},
      "stages": [
        {"name": "check-it", "backoffLimit": 1, "onFailure": "Continue",
         "template": {"spec": {"containers": [{"name": "checks", "image": "b"}]}}},
        {"name": "clean-up", "when": "Always", "completions": 3, "completionMode": "Indexed",
         "template": {"spec": {"containers": [{"name": "cleans", "image": "c"}]}}}]},
    "status": {
      "phase": "Running", "attempt": 5, "failures": 3, "disruptions": 1, "stage": "check-it",
      "stages": [
        {"name": "main", "phase": "Succeeded", "startTime": "2026-01-02T03:04:05Z",
         "completionTime": "2026-01-02T03:05:05Z", "failures": 2, "result": "id $(X)"},
        {"name": "check-it", "phase": "Running", "startTime": "2026-01-02T03:05:05Z",
         "failures": 1, "disruptions": 1, "deferrals": 4, "suspendedSeconds": 9},
        {"name": "clean-up", "phase": "Pending"}],
      "runs": [{"index": 0, "attempt": 5}]}})json");
}

CachedJob decoded(const Json& json) {
  const kube::ObjectPtr object = decode_job(document(json));
  EXPECT_TRUE(object);
  return static_cast<const CachedJob&>(*object);
}

TEST(StagesCodec, TheSpecIsThatOfTheCurrentStage) {
  const reconciler::Job job = decoded(staged_json()).job;
  ASSERT_EQ(job.stages.size(), 3u);
  EXPECT_EQ(job.stages[0].name, "main");
  EXPECT_TRUE(job.stages[1].may_fail);
  EXPECT_TRUE(job.stages[2].always);
  EXPECT_EQ(job.status.stage, 1u);
  EXPECT_EQ(job.spec.backoff_limit, 1);
  EXPECT_EQ(job.spec.first_container, "checks");
  EXPECT_EQ(job.spec.active_deadline, seconds(300)) << "the whole job's";
  EXPECT_EQ(job.spec.ttl_after_finished, seconds(7));
  EXPECT_EQ(job.stages[2].spec.active_deadline, std::nullopt);
  EXPECT_EQ(job.stages[2].spec.stage_deadline, reconciler::kAlwaysDeadline);
  EXPECT_EQ(job.stages[2].spec.completions, 3);
}

TEST(StagesCodec, ARequestToCancelHoldsForAllButAlwaysStagesAndBeforeOneToSuspend) {
  Json json = staged_json();
  json["spec"]["cancel"] = json["spec"]["suspend"] = true;
  const reconciler::Job job = decoded(json).job;
  EXPECT_TRUE(job.cancel);
  EXPECT_TRUE(job.stages[0].spec.cancel);
  EXPECT_TRUE(job.stages[1].spec.cancel);
  EXPECT_FALSE(job.stages[2].spec.cancel);
  for (const reconciler::Stage& stage : job.stages) EXPECT_FALSE(stage.spec.suspend);
}

TEST(StagesCodec, AStatusIsWrittenAsItWasRead) {
  const Json json = staged_json();
  const reconciler::Job job = decoded(json).job;
  EXPECT_EQ(job.status.stage_failures(), 1);
  EXPECT_EQ(job.status.stages[0].result, "id $(X)");
  const Json written = encode_status(job.spec, job.status);
  EXPECT_EQ(written["stage"], json["status"]["stage"]);
  EXPECT_EQ(written["stages"], json["status"]["stages"]);
  EXPECT_EQ(written["failed"], 2) << "of the stage: a failure and a loss";
}

TEST(StagesCodec, TheUpdateThatMovesOnCountsTheNextStagesRuns) {
  const reconciler::Job job = decoded(staged_json()).job;
  reconciler::Status next = job.status;
  next.stage = 2;
  next.runs.clear();
  const Json body = Json::parse(status_update_body(job, {"", "{}"}, next));
  EXPECT_EQ(body["status"]["completions"], "0/3");
  EXPECT_EQ(body["status"]["stage"], "clean-up");
}

TEST(StagesCodec, EntriesOfHistoryKeepTheirIndexInEveryStage) {
  Json json = staged_json();
  json["status"]["history"] = Json::parse(R"([{"attempt": 1, "outcome": "Succeeded", "index": 0,
                                               "stage": "main"}])");
  const reconciler::Job job = decoded(json).job;
  EXPECT_EQ(encode_status(job.spec, job.status)["history"], json["status"]["history"]);
}

TEST(StagesCodec, AStatusThatNamesNoStageOfTheJobIsInTheFirst) {
  Json json = staged_json();
  json["status"]["stage"] = "another";
  json["status"].erase("stages");
  const reconciler::Job job = decoded(json).job;
  EXPECT_EQ(job.status.stage, 0u);
  ASSERT_EQ(job.status.stages.size(), 3u);
  EXPECT_EQ(job.status.stages[2].name, "clean-up");
  EXPECT_EQ(job.status.stages[2].phase, StagePhase::kPending);
}

TEST(StagesCodec, APodIsMadeOfItsStagesTemplateAndKnowsTheResultsBefore) {
  const CachedJob cached = decoded(staged_json());
  const Json pod = Json::parse(*injection::pod_body(cached.job, cached.texts->pod_template,
                                                    {5, "prove-5-abcde"}, "", "7-of-32"));
  EXPECT_EQ(pod["metadata"]["labels"]["holdfast.dev/stage"], "check-it");
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["name"], "checks");
  std::map<std::string, std::string> variables;
  for (const Json& one : container["env"]) variables[one["name"]] = one["value"];
  EXPECT_EQ(variables["HOLDFAST_STAGE"], "check-it");
  EXPECT_EQ(variables["HOLDFAST_RESULT_MAIN"], "id $$(X)") << "a kubelet replaces nothing in it";
  EXPECT_EQ(variables.count("HOLDFAST_RESULT_CHECK_IT"), 0u);
}

TEST(StagesCodec, AJobWithoutStagesHasNothingOfThem) {
  Json json = staged_json();
  json["spec"].erase("stages");
  json["status"].erase("stage");
  json["status"].erase("stages");
  const CachedJob cached = decoded(json);
  EXPECT_TRUE(cached.job.stages.empty());
  const Json written = encode_status(cached.job.spec, cached.job.status);
  EXPECT_FALSE(written.contains("stage") || written.contains("stages"));
  const Json pod = Json::parse(
      *injection::pod_body(cached.job, cached.texts->pod_template, {5, "p"}, "", "7-of-32"));
  EXPECT_FALSE(pod["metadata"]["labels"].contains("holdfast.dev/stage"));
}

TEST(StagesCodec, AResultIsPrintableTextOf1024BytesAtMost) {
  Json pod = {{"metadata", {{"name", "p"}, {"uid", "u"}, {"resourceVersion", "1"}}},
              {"status", {{"containerStatuses", Json::array()}}}};
  const auto message = [&](const std::string& text, int exit_code) {
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "c"},
                      {"state", {{"terminated", {{"exitCode", exit_code}, {"message", text}}}}}}});
    return static_cast<const CachedPod&>(*decode_pod(document(pod)))
        .pod.containers[0]
        .terminated->message;
  };
  EXPECT_EQ(message("proof-17\n", 0), "proof-17");
  EXPECT_EQ(message("a\tb\x1b", 0), "a b");
  const std::string umlauts = [] {
    std::string text;
    for (int i = 0; i < 600; ++i) text += "\u00e4";
    return text;
  }();
  EXPECT_EQ(message("x" + umlauts, 0).size(), 1023u) << "no character is cut";
  EXPECT_LE(message(umlauts, 1).size(), 512u) << "what a failure leaves is no result";
}

}  // namespace
}  // namespace holdfast::codecs
