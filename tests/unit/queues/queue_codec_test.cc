// JobQueues between JSON and the reconciler's types.
#include "operator/queues/queue_codec.h"

#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "tests/support/json_document.h"

namespace holdfast::queues {
namespace {

using std::chrono::seconds;

Json queue_json() {
  return Json::parse(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue",
    "metadata": {"name": "encode", "namespace": "media", "uid": "q-1", "resourceVersion": "17",
                 "generation": 4, "labels": {"team": "video"}},
    "spec": {"concurrency": 10, "concurrencyPerKey": 2, "hold": true,
             "rate": {"jobs": 100, "periodSeconds": 60}},
    "status": {
      "holderIdentity": "operator-x7/3", "running": 4, "waiting": 2,
      "oldestWaitingSince": "2026-01-02T03:04:05Z", "head": ["a", "b"],
      "admitting": [{"uid": "u-1", "attempt": 0}, {"uid": "u-2", "attempt": 5}],
      "rate": {"tokens": 7, "time": "2026-01-02T03:04:05.123456Z"},
      "observedGeneration": 3,
      "conditions": [{"type": "Admitting", "status": "False", "reason": "Held", "message": "m",
                      "lastTransitionTime": "2026-01-02T03:04:05Z"}]}})json");
}

CachedQueue decoded(const Json& json) {
  const kube::ObjectPtr object = decode_queue(document(json));
  EXPECT_TRUE(object);
  return static_cast<const CachedQueue&>(*object);
}

TEST(QueueCodec, ReadsWhatTheSchemaHas) {
  const CachedQueue queue = decoded(queue_json());
  EXPECT_EQ(queue.generation, 4);
  EXPECT_EQ(queue.spec.concurrency, 10);
  EXPECT_EQ(queue.spec.concurrency_per_key, 2);
  EXPECT_TRUE(queue.spec.hold);
  EXPECT_EQ(queue.spec.rate, (reconciler::Rate{100, seconds(60)}));
  EXPECT_EQ(queue.status.admitting[1], (reconciler::Admission{"u-2", 5}));
  EXPECT_EQ(queue.status.tokens->count, 7);
}

TEST(QueueCodec, AnEmptySpecHasNoLimits) {
  Json json = queue_json();
  json["spec"] = Json::object();
  json.erase("status");
  const CachedQueue queue = decoded(json);
  EXPECT_FALSE(queue.spec.concurrency);
  EXPECT_FALSE(queue.spec.concurrency_per_key);
  EXPECT_FALSE(queue.spec.rate);
  EXPECT_FALSE(queue.spec.hold);
  EXPECT_EQ(queue.status, reconciler::QueueStatus());
}

TEST(QueueCodec, WritesTheStatusAsItWasRead) {
  const Json json = queue_json();
  EXPECT_EQ(encode_queue_status(decoded(json).status), json["status"]);
}

TEST(QueueCodec, TheWriteIsACompareAndSwapThatKeepsOthersMetadata) {
  const CachedQueue queue = decoded(queue_json());
  const Json body = Json::parse(queue_status_body(queue, 18, *queue.texts, queue.status));
  EXPECT_EQ(body["metadata"]["resourceVersion"], "18");
  EXPECT_EQ(body["metadata"]["uid"], "q-1");
  EXPECT_EQ(body["metadata"]["labels"]["team"], "video");
  EXPECT_FALSE(body.contains("spec"));
}

TEST(QueueCodec, LongMetadataIsNotKeptInMemory) {
  Json json = queue_json();
  json["metadata"]["annotations"]["long"] = std::string(codecs::kMaxCachedTexts, 'x');
  EXPECT_FALSE(decoded(json).texts);
}

TEST(QueueCodec, AStatusThatTheSchemaDoesNotKnowBreaksNothing) {
  Json json = queue_json();
  json["status"] = Json::parse(R"({"admitting": [{"uid": 3}, 7], "head": [1], "rate": {"tokens": -4,
      "time": "2026-01-02T03:04:05Z"}, "running": "x"})");
  const CachedQueue queue = decoded(json);
  EXPECT_EQ(queue.status.running, 0);
  EXPECT_EQ(queue.status.tokens->count, 0);
}

Json job_json() {
  return Json::parse(R"json({
    "metadata": {"name": "a", "namespace": "media", "uid": "u-1", "resourceVersion": "5",
                 "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"queue": {"name": "encode", "priority": -3, "key": "customer-7"},
             "template": {"spec": {"containers": [{"name": "c", "image": "a"}]}}}})json");
}

codecs::CachedJob job(const Json& json) {
  const kube::ObjectPtr object = codecs::decode_job(document(json));
  EXPECT_TRUE(object);
  return static_cast<const codecs::CachedJob&>(*object);
}

TEST(QueueCodec, AJobNamesItsQueue) {
  const codecs::CachedJob cached = job(job_json());
  ASSERT_TRUE(cached.job.queue);
  EXPECT_EQ(cached.job.queue->name, "encode");
  EXPECT_EQ(cached.job.queue->priority, -3);
  EXPECT_EQ(cached.job.queue->key, "customer-7");
  Json without = job_json();
  without["spec"].erase("queue");
  EXPECT_FALSE(job(without).job.queue);
}

TEST(QueueCodec, OnlyAJobThatSaysThatItWaitsKeepsNoTemplate) {
  Json json = job_json();
  json["spec"]["template"]["spec"]["hostname"] = std::string(1000, 'x');
  EXPECT_FALSE(job(json).texts->pod_template.empty());
  json["status"] = Json::parse(
      R"({"phase": "Pending", "waiting": {"reason": "Queued", "message": "m", "nextAction": "n"}})");
  EXPECT_TRUE(job(json).texts->pod_template.empty());
  EXPECT_LT(job(json).texts->pod_template.capacity(), 100u) << "an empty text may keep its memory";
  EXPECT_FALSE(job(json).texts->metadata.empty()) << "the next write of its status needs it";
}

}  // namespace
}  // namespace holdfast::queues
