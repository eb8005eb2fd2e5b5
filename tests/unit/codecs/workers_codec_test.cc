// A job of a pool between JSON and the reconciler's types.
#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "reconciler/names.h"
#include "reconciler/run/slot.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

using std::chrono::seconds;

Json pooled() {
  return Json::parse(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"name": "thumb", "namespace": "media", "uid": "uid-1", "resourceVersion": "17",
                 "generation": 1},
    "spec": {"workerPool": {"name": "thumbnails", "key": "customer-7"}, "payload": "{}",
             "heartbeat": {"progressDeadlineSeconds": 90}},
    "status": {"phase": "Running", "attempt": 3,
               "runs": [{"index": 0, "attempt": 3, "workerName": "thumbnails-x", "workerUID": "l-1",
                         "workerLeaseDurationSeconds": 30, "checkpoint": "page 7", "startTime": "2026-01-02T03:04:05.000001000Z"}],
               "waiting": {"reason": "WorkerRunning", "message": "m", "nextAction": "n"}}})json");
}

CachedJob decoded(const Json& json) {
  const kube::ObjectPtr object = decode_job(document(json));
  EXPECT_TRUE(object);
  return static_cast<const CachedJob&>(*object);
}

TEST(WorkersCodec, AJobNeedsNoTemplateIfItHasAPool) {
  const reconciler::Job job = decoded(pooled()).job;
  ASSERT_TRUE(job.spec.pool);
  EXPECT_TRUE(job.has_pool);
  EXPECT_EQ(job.spec.pool->name, "thumbnails");
  EXPECT_EQ(job.spec.pool->key, "customer-7");
  EXPECT_EQ(job.spec.pool->progress_deadline, seconds(90));
  EXPECT_FALSE(job.spec.heartbeat) << "a Lease of the job's own would wait for a pod";
  EXPECT_EQ(job.spec.pod_replacement, reconciler::PodReplacementPolicy::kFailed);
}

// While a policy is missing, the API server takes it. The job then ends with the reason.
TEST(WorkersCodec, AJobWithNeitherIsOneWhosePodsTemplateIsEmpty) {
  Json neither = pooled();
  neither["spec"].erase("workerPool");
  EXPECT_EQ(decode_texts(document(neither)).pod_template, "{}");
  EXPECT_FALSE(decoded(neither).job.spec.pool);
  EXPECT_EQ(decode_texts(document(pooled())).pod_template, "");
}

TEST(WorkersCodec, ThePlaceOfARunReadsBackAsItWasWritten) {
  const CachedJob cached = decoded(pooled());
  ASSERT_EQ(cached.job.status.runs.size(), 1U);
  const reconciler::Run& run = cached.job.status.runs[0];
  EXPECT_TRUE(run.at_worker());
  EXPECT_EQ(run.worker_name, "thumbnails-x");
  EXPECT_EQ(run.worker_lease_duration, seconds(30));
  EXPECT_EQ(run.checkpoint, "page 7");
  EXPECT_EQ(run.pod_name, reconciler::pod_name("thumb", "uid-1", 3))
      << "of the pod that stands for it";
  const Json again = encode_status(cached.job.spec, cached.job.status);
  EXPECT_EQ(again["runs"], pooled()["status"]["runs"]) << "it has no pod of its own";
}

TEST(WorkersCodec, ARunThatIsAloneStaysSo) {
  Json json = pooled();
  EXPECT_FALSE(decoded(json).job.status.runs.at(0).alone);
  json["status"]["runs"][0]["alone"] = true;
  const CachedJob cached = decoded(json);
  EXPECT_TRUE(cached.job.status.runs.at(0).alone);
  EXPECT_EQ(encode_status(cached.job.spec, cached.job.status)["runs"], json["status"]["runs"]);
}

// An older operator has recorded it, or the schema was another one.
TEST(WorkersCodec, ALeaseDurationOnRecordMayBeMissingOrBeyondTheSchema) {
  const auto duration = [](const Json& recorded) {
    Json json = pooled();
    json["status"]["runs"][0]["workerLeaseDurationSeconds"] = recorded;
    return decoded(json).job.status.runs.at(0).worker_lease_duration;
  };
  EXPECT_EQ(duration(nullptr), seconds(0));
  EXPECT_EQ(duration(-5), seconds(0));
  EXPECT_EQ(duration(3601), seconds(3600));
  Json without = pooled();
  without["status"]["runs"][0].erase("workerLeaseDurationSeconds");
  const CachedJob cached = decoded(without);
  const Json again = encode_status(cached.job.spec, cached.job.status);
  EXPECT_EQ(again["runs"], without["status"]["runs"]);
}

TEST(WorkersCodec, ARunThatWaitsKeepsItsLastPlace) {
  Json json = pooled();
  json["status"]["phase"] = "Backoff";
  json["status"]["runs"][0]["nextAttemptTime"] = "2026-01-02T03:05:05.000000Z";
  const CachedJob cached = decoded(json);
  const reconciler::Run& run = cached.job.status.runs.at(0);
  EXPECT_TRUE(run.at_worker()) << "the next place waits until this one is empty";
  EXPECT_FALSE(run.pod_name.empty());
}

TEST(WorkersCodec, ALaterStageMayHaveAPool) {
  Json json = pooled();
  json["spec"]["template"] = {{"spec", {{"containers", {{{"name", "main"}}}}}}};
  json["spec"].erase("workerPool");
  json["spec"].erase("payload");
  json["spec"]["stages"] = {{{"name", "small"}, {"workerPool", {{"name", "thumbnails"}}}}};
  const reconciler::Job job = decoded(json).job;
  EXPECT_FALSE(job.spec.pool);
  EXPECT_TRUE(job.has_pool) << "so it belongs to its namespace's shard from its start";
  EXPECT_EQ(job.stages.at(1).spec.first_container, reconciler::kSlotContainer);
  EXPECT_EQ(job.stages.at(0).spec.first_container, "main");
}

}  // namespace
}  // namespace holdfast::codecs
