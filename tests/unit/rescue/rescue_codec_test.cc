// What is read from the pods of other controllers, and the two requests that free one.
#include "operator/rescue/rescue_codec.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/support/json_document.h"

namespace holdfast::rescue {
namespace {

using std::chrono::seconds;

Json pod_of_a_job() {
  return {{"metadata",
           {{"name", "night-x7"},
            {"namespace", "media"},
            {"uid", "uid-7"},
            {"resourceVersion", "42"},
            {"labels", {{"holdfast.dev/rescue", "true"}}},
            {"ownerReferences", Json::array({{{"apiVersion", "v1"}, {"kind", "Other"}},
                                             {{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", "night"},
                                              {"uid", "job-1"},
                                              {"controller", true}}})}}},
          {"spec", {{"nodeName", "node-1"}}},
          {"status", {{"phase", "Running"}}}};
}

reconciler::RescuePod decoded(const Json& pod) {
  const RescuePodPtr cached = decode_rescue_pod(document(pod));
  return cached ? cached->pod : reconciler::RescuePod();
}

TEST(RescueCodec, APodHasItsNodeItsControllerAndTheDefaultWindow) {
  const reconciler::RescuePod pod = decoded(pod_of_a_job());
  EXPECT_EQ(pod.node, "node-1");
  EXPECT_EQ(pod.owner.kind, "Job");
  EXPECT_EQ(pod.owner.api_version, "batch/v1");
  EXPECT_EQ(pod.owner.name, "night");
  EXPECT_EQ(pod.owner.uid, "job-1");
  EXPECT_EQ(pod.window, seconds(60));
  EXPECT_FALSE(pod.ended || pod.freed || pod.is_going || pod.ours || pod.is_static ||
               pod.has_claims || pod.frees_claims);
}

TEST(RescueCodec, AnnotationsSetTheWindowAndAllowVolumes) {
  Json json = pod_of_a_job();
  json["metadata"]["annotations"] = {{"holdfast.dev/lostAfterSeconds", "20"},
                                     {"holdfast.dev/rescueVolumes", "true"}};
  EXPECT_EQ(decoded(json).window, seconds(20));
  EXPECT_TRUE(decoded(json).frees_claims);
  json["metadata"]["annotations"]["holdfast.dev/lostAfterSeconds"] = "5";
  EXPECT_FALSE(decoded(json).window);
}

TEST(RescueCodec, PersistentAndEphemeralClaimsAreVolumesThatMayStillBeWritten) {
  for (const char* const kind : {"persistentVolumeClaim", "ephemeral"}) {
    Json json = pod_of_a_job();
    json["spec"]["volumes"] = Json::array(
        {{{"name", "tmp"}, {"emptyDir", Json::object()}}, {{"name", "d"}, {kind, Json::object()}}});
    EXPECT_TRUE(decoded(json).has_claims) << kind;
  }
  Json json = pod_of_a_job();
  json["spec"]["volumes"] = Json::array({{{"name", "tmp"}, {"emptyDir", Json::object()}}});
  EXPECT_FALSE(decoded(json).has_claims);
}

TEST(RescueCodec, OnlyOurReasonSaysThatAPodIsFreed) {
  Json json = pod_of_a_job();
  Json& conditions = json["status"]["conditions"];
  conditions = Json::array(
      {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByTaintManager"}}});
  EXPECT_FALSE(decoded(json).freed);
  conditions[0]["reason"] = "HoldfastNodeSilent";
  EXPECT_TRUE(decoded(json).freed);
  conditions[0]["status"] = "False";
  EXPECT_FALSE(decoded(json).freed);
}

TEST(RescueCodec, ADeletionWithoutGraceIsTheLastThatCanBeAskedFor) {
  Json json = pod_of_a_job();
  json["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z";
  json["metadata"]["deletionGracePeriodSeconds"] = 30;
  EXPECT_FALSE(decoded(json).is_going);
  json["metadata"]["deletionGracePeriodSeconds"] = 0;
  EXPECT_TRUE(decoded(json).is_going);
}

TEST(RescueCodec, StaticPodsAndPodsOfOursAreKnown) {
  Json json = pod_of_a_job();
  json["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "hash"}};
  EXPECT_TRUE(decoded(json).is_static);
  json["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  EXPECT_FALSE(decoded(json).ours);
  json["metadata"]["finalizers"].push_back("holdfast.dev/outcome");
  EXPECT_TRUE(decoded(json).ours);
}

TEST(RescueCodec, ANodesTaintSaysThatItIsOutOfService) {
  Json node = {{"spec", {{"taints", Json::array({{{"key", "node.kubernetes.io/unreachable"}}})}}}};
  EXPECT_FALSE(is_out_of_service(document(node)));
  node["spec"]["taints"].push_back({{"key", "node.kubernetes.io/out-of-service"}});
  EXPECT_TRUE(is_out_of_service(document(node)));
}

TEST(RescueCodec, TheNodeControllersTaintsAndACordonKeepNewPodsAway) {
  const auto tainted = [](const char* key, const char* effect) {
    return document({{"spec", {{"taints", Json::array({{{"key", key}, {"effect", effect}}})}}}});
  };
  EXPECT_TRUE(takes_no_pods(tainted("node.kubernetes.io/unreachable", "NoSchedule")));
  EXPECT_TRUE(takes_no_pods(tainted("node.kubernetes.io/not-ready", "NoSchedule")));
  EXPECT_TRUE(takes_no_pods(document({{"spec", {{"unschedulable", true}}}})));
  EXPECT_FALSE(takes_no_pods(tainted("node.kubernetes.io/unreachable", "NoExecute")))
      << "pods tolerate it for 300 s";
  EXPECT_FALSE(takes_no_pods(tainted("example.com/gpu", "NoSchedule"))) << "some pods tolerate it";
  EXPECT_FALSE(takes_no_pods(document({{"spec", {{"podCIDR", "10.0.0.0/24"}}}})));
}

TEST(RescueCodec, TheWriteThatDecidesNamesThePodAndItsVersion) {
  const RescuePodPtr pod = decode_rescue_pod(document(pod_of_a_job()));
  const Json patch = *parse_json(freeing_patch(*pod, seconds(60), Time(seconds(1'767'225'600))));
  EXPECT_EQ(patch["metadata"], (Json{{"uid", "uid-7"}, {"resourceVersion", "42"}}));
  EXPECT_EQ(patch["status"]["phase"], "Failed");
  const Json& condition = patch["status"]["conditions"][0];
  EXPECT_EQ(condition["type"], "DisruptionTarget");
  EXPECT_EQ(condition["status"], "True");
  EXPECT_EQ(condition["reason"], "HoldfastNodeSilent");
  EXPECT_EQ(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
}

}  // namespace
}  // namespace holdfast::rescue
