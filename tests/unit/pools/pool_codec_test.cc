// WorkerPools between JSON and the reconciler's types.
#include "operator/pools/pool_codec.h"

#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "operator/pools/worker_pod.h"
#include "tests/support/json_document.h"

namespace holdfast::pools {
namespace {

using std::chrono::seconds;

Json pool_json() {
  return Json::parse(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool",
    "metadata": {"name": "thumbnails", "namespace": "media", "uid": "p-1", "resourceVersion": "17",
                 "generation": 4, "labels": {"team": "video"}},
    "spec": {"minWorkers": 2, "maxWorkers": 20, "slotsPerWorker": 4, "idleSeconds": 60,
             "leaseDurationSeconds": 15,
             "startDeadlineSeconds": 120, "stopGraceSeconds": 45,
             "template": {"spec": {"containers": [{"name": "c", "image": "a", "command": ["x"]}]}}},
    "status": {
      "observedGeneration": 3, "workers": 5, "busy": 1, "idle": 2, "starting": 1, "draining": 1,
      "slots": 12, "busySlots": 3, "waiting": 7, "selector": "holdfast.dev/worker-pool=thumbnails",
      "holderIdentity": "operator-x7/3", "failedStarts": 2, "nextStart": "2026-01-02T03:04:05Z",
      "oldestWaitingSince": "2026-01-02T03:04:06Z", "message": "m",
      "conditions": [{"type": "Available", "status": "False", "reason": "WorkersCannotStart",
                      "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}})json");
}

CachedPool decoded(const Json& json) {
  const kube::ObjectPtr object = decode_pool(document(json));
  EXPECT_TRUE(object);
  return static_cast<const CachedPool&>(*object);
}

TEST(PoolCodec, ReadsWhatTheSchemaHas) {
  const CachedPool pool = decoded(pool_json());
  EXPECT_EQ(pool.generation, 4);
  EXPECT_EQ(pool.invalid, "");
  EXPECT_FALSE(pool.deleting);
  EXPECT_EQ(pool.spec,
            (reconciler::PoolSpec{2, 20, 4, seconds(60), seconds(15), seconds(120), seconds(45)}));
  EXPECT_EQ(pool.status.starts.failed, 2);
  EXPECT_EQ(Json::parse(*pool.pod_template), pool_json()["spec"]["template"]);
  EXPECT_EQ(pool.hash, worker_hash(*pool.pod_template, pool.spec));
}

TEST(PoolCodec, AnEmptySpecHasTheDefaults) {
  Json json = pool_json();
  json["spec"] = {{"template", Json::object()}};
  json.erase("status");
  json["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  const CachedPool pool = decoded(json);
  EXPECT_EQ(pool.invalid, "");
  EXPECT_EQ(pool.spec,
            (reconciler::PoolSpec{1, 10, 1, seconds(300), seconds(30), seconds(600), seconds(30)}));
  EXPECT_EQ(pool.status, reconciler::PoolStatus());
  EXPECT_TRUE(pool.deleting);
}

TEST(PoolCodec, AWrongSpecNamesItsFieldAndStaysWithinTheLimits) {
  const auto with = [](const char* key, const Json& value) {
    Json json = pool_json();
    json["spec"][key] = value;
    return decoded(json);
  };
  EXPECT_EQ(with("slotsPerWorker", 17).invalid,
            "spec.slotsPerWorker must be a whole number from 1 to 16");
  EXPECT_EQ(with("slotsPerWorker", 17).spec.slots, 16);
  EXPECT_EQ(with("slotsPerWorker", 0).spec.slots, 1);
  EXPECT_EQ(with("minWorkers", -1).spec.min_workers, 0);
  EXPECT_EQ(with("maxWorkers", 100'000).spec.max_workers, 500);
  EXPECT_EQ(with("maxWorkers", "many").invalid,
            "spec.maxWorkers must be a whole number from 1 to 500");
  EXPECT_EQ(with("idleSeconds", -5).spec.idle, seconds(0));
  EXPECT_EQ(with("leaseDurationSeconds", 1).spec.lease_duration, seconds(5));
  EXPECT_EQ(with("startDeadlineSeconds", 0).invalid,
            "spec.startDeadlineSeconds must be a whole number from 1 to 31536000");
  EXPECT_EQ(with("stopGraceSeconds", 3601).invalid,
            "spec.stopGraceSeconds must be a whole number from 1 to 3600");
  EXPECT_EQ(with("stopGraceSeconds", 3601).spec.stop_grace, seconds(3600));
  const CachedPool crossed = with("minWorkers", 21);
  EXPECT_EQ(crossed.invalid, "spec.minWorkers is more than spec.maxWorkers");
  EXPECT_EQ(crossed.spec.min_workers, 20);
  EXPECT_EQ(with("template", nullptr).invalid, "spec.template is missing");
}

TEST(PoolCodec, TheHashIsOfWhatAWorkerIsMadeFrom) {
  const std::string hash = decoded(pool_json()).hash;
  const auto changed = [&](const char* pointer, const Json& value) {
    Json json = pool_json();
    json[Json::json_pointer(pointer)] = value;
    return decoded(json).hash != hash;
  };
  EXPECT_TRUE(changed("/spec/template/spec/containers/0/image", "b"));
  EXPECT_TRUE(changed("/spec/slotsPerWorker", 5));
  EXPECT_TRUE(changed("/spec/leaseDurationSeconds", 20));
  EXPECT_TRUE(changed("/spec/stopGraceSeconds", 60));
  EXPECT_FALSE(changed("/spec/minWorkers", 3));
  EXPECT_FALSE(changed("/spec/startDeadlineSeconds", 3));
  EXPECT_FALSE(changed("/spec/idleSeconds", 3));
  EXPECT_FALSE(changed("/metadata/labels/team", "x"));
  EXPECT_EQ(hash.size(), 16u);
}

// A version of Holdfast that knows stopGraceSeconds replaces no worker by that.
TEST(PoolCodec, TheUsualStopGraceLeavesTheHashAsItWas) {
  reconciler::PoolSpec spec;
  EXPECT_EQ(worker_hash("{}", spec), "6b3f728cc2eeda61");
  spec.stop_grace = seconds(31);
  EXPECT_NE(worker_hash("{}", spec), "6b3f728cc2eeda61");
}

TEST(PoolCodec, WritesTheStatusAsItWasRead) {
  const Json json = pool_json();
  EXPECT_EQ(encode_pool_status(decoded(json).status), json["status"]);
}

TEST(PoolCodec, TheWriteIsACompareAndSwapThatKeepsOthersMetadata) {
  const CachedPool pool = decoded(pool_json());
  const Json body = Json::parse(pool_status_body(pool, 18, *pool.texts, pool.status));
  EXPECT_EQ(body["kind"], "WorkerPool");
  EXPECT_EQ(body["metadata"]["resourceVersion"], "18");
  EXPECT_EQ(body["metadata"]["uid"], "p-1");
  EXPECT_EQ(body["metadata"]["labels"]["team"], "video");
  EXPECT_FALSE(body.contains("spec"));
}

TEST(PoolCodec, LongTextsAreNotKeptInMemory) {
  Json json = pool_json();
  json["spec"]["template"]["metadata"]["annotations"]["long"] =
      std::string(codecs::kMaxCachedTexts, 'x');
  const CachedPool pool = decoded(json);
  EXPECT_FALSE(pool.pod_template);
  EXPECT_FALSE(pool.texts);
  EXPECT_EQ(pool.hash, worker_hash(template_of(document(json)), pool.spec)) << "it is still known";
}

TEST(PoolCodec, AStatusThatTheSchemaDoesNotKnowBreaksNothing) {
  Json json = pool_json();
  json["status"] = Json::parse(R"({"workers": "x", "failedStarts": -4, "nextStart": 7,
                                   "conditions": [1, {}], "waiting": 99999999999999})");
  const CachedPool pool = decoded(json);
  EXPECT_EQ(pool.status.workers.total, 0);
  EXPECT_EQ(pool.status.starts.failed, 0);
  EXPECT_FALSE(pool.status.starts.next);
  EXPECT_EQ(pool.status.waiting, reconciler::kCountLimit);
}

}  // namespace
}  // namespace holdfast::pools
