// What a newer version wrote, and this one does not know: it is named, or written back as it was.
#include <functional>

#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/known_fields.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

using reconciler::Phase;

Json json(const std::string& text) { return *parse_json(text); }

std::string unknown_in(const std::string& spec) {
  return unknown_in_spec(KnownKind::kDurableJob, document(json(spec)));
}

TEST(KnownFields, ThoseOfTheSpecThatAreNotKnownAreNamedWithTheirPlace) {
  EXPECT_EQ(unknown_in(R"({"gang": {"placeSeconds": 60}})"), "spec.gang");
  EXPECT_EQ(unknown_in(R"({"heartbeat": {"leaseDurationSeconds": 15, "restart": "InPlace"}})"),
            "spec.heartbeat.restart");
  EXPECT_EQ(unknown_in(R"({"stages": [{"name": "a"}, {"name": "b", "twice": true}]})"),
            "spec.stages[1].twice");
  EXPECT_EQ(unknown_in(R"({"podFailurePolicy": {"rules": [{"action": "Count",
                           "onExitCodes": {"operator": "In", "values": [1], "signal": 9}}]}})"),
            "spec.podFailurePolicy.rules[0].onExitCodes.signal");
  EXPECT_EQ(unknown_in(R"({"a": 1, "cancel": true, "b": 2})"), "spec.a, spec.b");
}

// Taken for another one, it would do something else than its author wants.
TEST(KnownFields, AKnownFieldWithAValueOfANewerVersionIsNotKnown) {
  EXPECT_EQ(unknown_in(R"({"podFailurePolicy": {"rules": [{"action": "Retire"}]}})"),
            "spec.podFailurePolicy.rules[0].action: \"Retire\"");
  EXPECT_EQ(unknown_in(R"({"completions": 200000})"), "spec.completions: 200000")
      << "fewer runs than it asks for would make it succeed";
  EXPECT_EQ(unknown_in(R"({"completions": 0})"), "spec.completions: 0");
  EXPECT_EQ(unknown_in(R"({"notify": ["a", "b", "c", "d", "e"]})"), "spec.notify: 5 entries");
}

TEST(KnownFields, APodTemplateIsPassedOnAsItIs) {
  EXPECT_EQ(unknown_in(R"({"template": {"spec": {"brandNew": 1, "containers": [{"b": 2}]}, "c": 3},
                           "stages": [{"name": "a", "template": {"d": 4}}]})"),
            "");
}

TEST(KnownFields, ManyNamesAreCut) {
  Json spec = Json::object();
  for (int n = 0; n < 500; ++n) spec["field" + std::to_string(n)] = n;
  const std::string names = unknown_in_spec(KnownKind::kDurableJob, document(spec));
  EXPECT_LE(names.size(), kUnknownNamesLimit);
  EXPECT_TRUE(names.ends_with(", ..."));
  spec = Json{{std::string(100'000, 'x'), 1}};
  EXPECT_LE(unknown_in_spec(KnownKind::kDurableJob, document(spec)).size(), kUnknownNamesLimit);
}

TEST(KnownFields, QueuesAndPoolsHaveTheirOwn) {
  EXPECT_EQ(unknown_in_spec(KnownKind::kJobQueue,
                            document(json(R"({"hold": true, "rate": {"jobs": 1, "burst": 2}})"))),
            "spec.rate.burst");
  EXPECT_EQ(unknown_in_spec(KnownKind::kWorkerPool,
                            document(json(R"({"template": {"x": 1}, "gpus": 2})"))),
            "spec.gpus");
}

// ---- The status.

// Each place of a status has something of a newer version.
Json newer_job() {
  return json(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"name": "encode", "namespace": "media", "uid": "u-1", "resourceVersion": "17",
                 "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {
      "completions": 3, "completionMode": "Indexed", "template": {"spec": {"containers": []}},
      "stages": [{"name": "report", "template": {"spec": {"containers": []}}}]},
    "status": {
      "phase": "Running", "attempt": 4, "failures": 1, "disruptions": 0, "observedGeneration": 3,
      "active": 2, "failed": 1, "completions": "0/3", "stage": "main", "notifications": 2,
      "startTime": "2026-01-02T03:04:06Z",
      "rank": "7-of-32", "gang": {"generation": 2, "members": [{"index": 0}]},
      "waiting": {"reason": "PodRunning", "message": "m", "nextAction": "n", "by": "us"},
      "stages": [
        {"name": "main", "phase": "Running", "failures": 1, "startTime": "2026-01-02T03:04:06Z",
         "nodes": ["a"]},
        {"name": "report", "phase": "Pending", "priority": 3}],
      "runs": [
        {"index": 0, "attempt": 2, "podName": "p", "podUID": "u", "alone": true,
         "startTime": "2026-01-02T03:04:06.000000001Z"},
        {"index": 1, "attempt": 4, "podName": "p", "podUID": "v", "podFailures": 2,
         "startTime": "2026-01-02T03:04:06.000000001Z"}],
      "history": [
        {"stage": "main", "index": 1, "attempt": 1, "outcome": "Preempted", "signal": 9,
         "endTime": "2026-01-02T03:04:07Z"},
        {"stage": "main", "index": 1, "attempt": 3, "outcome": "Failed", "reason": "Newer",
         "endTime": "2026-01-02T03:04:08Z", "generation": 1}],
      "conditions": [
        {"type": "Stalled", "status": "False", "reason": "Newer", "message": "", "severity": "Low",
         "lastTransitionTime": "2026-01-02T03:04:06Z"},
        {"type": "Gathered", "status": "True", "reason": "r", "message": "", "x": {"y": [1, null]},
         "lastTransitionTime": "2026-01-02T03:04:06Z"}],
      "outbox": [
        {"number": 1, "event": "StageEnded", "time": "2026-01-02T03:04:06Z", "stage": "main",
         "reason": "Failed", "targets": ["pager"], "severity": "High"},
        {"number": 2, "event": "GangPlaced", "time": "2026-01-02T03:04:06Z", "targets": ["pager"],
         "members": 8}]}})json");
}

const CachedJob& cached(const kube::ObjectPtr& object) {
  return static_cast<const CachedJob&>(*object);
}

Json written(const Json& object, const std::function<void(reconciler::Status&)>& decide = {}) {
  const kube::ObjectPtr decoded = decode_job(document(object));
  reconciler::Status next = cached(decoded).job.status;
  if (decide) decide(next);
  const JobTexts texts = decode_texts(document(object));
  return Json::parse(status_update_body(cached(decoded).job, texts, next))["status"];
}

// The names of pods follow from their attempts, so the operator writes its own.
Json without_pod_names(Json status) {
  for (Json& run : status["runs"]) run.erase("podName");
  return status;
}

TEST(KnownFields, WhatANewerVersionWroteIntoAStatusIsWrittenBackAsItWas) {
  EXPECT_EQ(without_pod_names(written(newer_job())), without_pod_names(newer_job()["status"]));
}

TEST(KnownFields, AnAttemptTakesItsUnknownFieldsAlong) {
  const Json status = written(newer_job(), [](reconciler::Status& next) {
    next.runs[1].attempt = 5;
    next.attempt = 5;
  });
  EXPECT_TRUE(status["runs"][0]["alone"]);
  EXPECT_FALSE(status["runs"][1].contains("podFailures")) << "it was of attempt 4";
}

TEST(KnownFields, WhatIsReplacedTakesItsUnknownFieldsAlong) {
  const Json status = written(newer_job(), [](reconciler::Status& next) {
    next.waiting->reason = reconciler::Reason::kRetryBackoff;
    next.outbox.erase(next.outbox.begin());
    next.history.erase(next.history.begin());
    next.conditions[0].status = true;
  });
  EXPECT_FALSE(status["waiting"].contains("by")) << "the job waits for something else";
  ASSERT_EQ(status["outbox"].size(), 1u);
  EXPECT_EQ(status["outbox"][0]["members"], 8);
  ASSERT_EQ(status["history"].size(), 1u);
  EXPECT_EQ(status["history"][0]["generation"], 1);
  EXPECT_EQ(status["conditions"][0]["severity"], "Low") << "the condition is the same one";
}

TEST(KnownFields, AnUnknownPhaseIsReadFromTheRestOfTheStatus) {
  Json object = newer_job();
  object["status"]["phase"] = "Gathering";
  EXPECT_EQ(cached(decode_job(document(object))).job.status.phase, Phase::kRunning);
  EXPECT_EQ(written(object)["phase"], "Gathering") << "as long as nothing else is decided";
  EXPECT_EQ(written(object, [](auto& next) { next.phase = Phase::kBackoff; })["phase"], "Backoff");
  object["status"].erase("runs");
  EXPECT_EQ(cached(decode_job(document(object))).job.status.phase, Phase::kBackoff);
  object["status"]["attempt"] = 0;
  EXPECT_EQ(cached(decode_job(document(object))).job.status.phase, Phase::kPending);
  object["status"]["completionTime"] = "2026-01-02T03:05:06Z";
  EXPECT_EQ(cached(decode_job(document(object))).job.status.phase, Phase::kFailed);
  object["status"]["conditions"][1]["type"] = "Complete";
  EXPECT_EQ(cached(decode_job(document(object))).job.status.phase, Phase::kSucceeded)
      << "a job that has ended never runs again";
  EXPECT_EQ(written(object)["phase"], "Gathering");
}

TEST(KnownFields, AStageThatEndedInAnUnknownPhaseHasEnded) {
  Json object = newer_job();
  Json& stage = object["status"]["stages"][0];
  stage["phase"] = "Expired";
  const auto phase = [&] {
    return cached(decode_job(document(object))).job.status.stages[0].phase;
  };
  EXPECT_EQ(phase(), reconciler::StagePhase::kRunning);
  stage["completionTime"] = "2026-01-02T03:05:06Z";
  EXPECT_EQ(phase(), reconciler::StagePhase::kSucceeded);
  stage["message"] = "why";
  EXPECT_EQ(phase(), reconciler::StagePhase::kFailed);
  EXPECT_EQ(written(object)["stages"][0]["phase"], "Expired");
  stage.erase("startTime");
  stage.erase("completionTime");
  EXPECT_EQ(phase(), reconciler::StagePhase::kSkipped);
}

TEST(KnownFields, AFinishedJobIsWrittenBackToo) {
  Json object = newer_job();
  object["status"]["phase"] = "Failed";
  object["status"]["completionTime"] = "2026-01-02T03:05:06Z";
  object["status"].erase("waiting");
  object["status"].erase("runs");
  object["status"].erase("active");
  const JobTexts texts = decode_texts(document(object));
  ASSERT_TRUE(texts.finished);
  reconciler::Status decided = texts.finished->status;
  decided.outbox.clear();
  Json expected = object["status"];
  expected.erase("outbox");
  EXPECT_EQ(
      Json::parse(status_update_body(*texts.finished, texts,
                                     finished_status(texts.finished->status, decided)))["status"],
      expected);
}

TEST(KnownFields, AJobThatWaitsInItsQueueIsWrittenBackToo) {
  Json object = newer_job();
  object["spec"]["queue"] = {{"name", "q"}};
  object["status"]["phase"] = "Pending";
  object["status"]["waiting"]["reason"] = "Queued";
  const kube::ObjectPtr decoded = decode_job(document(object));
  ASSERT_TRUE(cached(decoded).texts);
  EXPECT_EQ(cached(decoded).texts->unknown, decode_texts(document(object)).unknown);
  EXPECT_FALSE(cached(decoded).texts->unknown.empty());
}

TEST(KnownFields, AStatusOfThisVersionCostsNothing) {
  Json object = newer_job();
  object["status"] = {{"phase", "Pending"}, {"attempt", 0}};
  EXPECT_EQ(decode_texts(document(object)).unknown, "");
}

// The API server takes 1.5 MiB, and runs are many.
TEST(KnownFields, WhatIsWrittenBackIsBounded) {
  Json object = newer_job();
  for (Json& run : object["status"]["runs"]) run["large"] = std::string(kUnknownStatusLimit, 'x');
  const Json status = written(object);
  EXPECT_FALSE(status["runs"][0].contains("large"));
  EXPECT_EQ(status["rank"], "7-of-32") << "the runs come last";
  EXPECT_EQ(status["history"][1]["generation"], 1);
  Json large = newer_job();
  large["status"]["large"] = std::string(kMaxCachedTexts, 'x');
  EXPECT_FALSE(cached(decode_job(document(large))).texts) << "the memory is bounded, too";
  EXPECT_EQ(written(large)["large"], large["status"]["large"]);
}

TEST(KnownFields, TheJobSaysWhatOfItsSpecIsNotKnown) {
  Json object = newer_job();
  EXPECT_EQ(cached(decode_job(document(object))).job.unknown, "");
  object["spec"]["stages"][0]["gang"] = true;
  EXPECT_EQ(cached(decode_job(document(object))).job.unknown, "spec.stages[0].gang");
}

}  // namespace
}  // namespace holdfast::codecs
