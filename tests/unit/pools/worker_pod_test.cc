// The pod of a warm worker: how it is made, and what the pool reads of it.
#include "operator/pools/worker_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/agent_protocol.h"
#include "operator/injection/agent_container.h"
#include "tests/support/json_document.h"

namespace holdfast::pools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WorkerPool pool() {
  WorkerPool pool;
  pool.name = "thumbnails";
  pool.namespace_ = "media";
  pool.uid = "p-1";
  pool.hash = "0123456789abcdef";
  pool.spec.slots = 4;
  pool.spec.lease_duration = std::chrono::seconds(15);
  return pool;
}

Json pod_template() {
  return Json::parse(R"({
    "metadata": {"labels": {"app": "x", "holdfast.dev/worker-pool": "other"},
                 "annotations": {"note": "n", "holdfast.dev/intent": "i"}},
    "spec": {"restartPolicy": "Always",
             "initContainers": [{"name": "fetch", "image": "fetcher"}],
             "containers": [{"name": "main", "image": "worker", "command": ["/bin/work", "-v"],
                             "env": [{"name": "A", "value": "a"},
                                     {"name": "HOLDFAST_SLOTS", "value": "99"}]},
                            {"name": "side", "image": "logger"}]}})");
}

Json made(const Json& given = pod_template()) {
  const Result<std::string> body =
      worker_pod_body(pool(), given.dump(), "thumbnails-1-x", "agent:1");
  return body ? Json::parse(*body) : Json(body.error().message);
}

std::string variable_of(const Json& pod, const std::string& name) {
  std::string value = "(none)";
  int found = 0;
  for (const Json& one : pod["spec"]["containers"][0]["env"]) {
    if (one["name"] != name) continue;
    value = one.contains("value") ? one["value"].get<std::string>() : one["valueFrom"].dump();
    ++found;
  }
  return found > 1 ? "(twice)" : value;
}

TEST(WorkerPod, PrefersOtherNodesThanThoseOfWorkersThatWereCutOff) {
  WorkerPool owner = pool();
  owner.avoid = {"node-a"};
  const Json spec = Json::parse(
      *worker_pod_body(owner, pod_template().dump(), "thumbnails-1-x", "agent:1"))["spec"];
  EXPECT_NE(spec["affinity"].dump().find(R"("operator":"NotIn","values":["node-a"])"),
            std::string::npos);
  EXPECT_FALSE(made()["spec"].contains("affinity"));
}

TEST(WorkerPod, BelongsToItsPool) {
  const Json pod = made();
  EXPECT_EQ(pod["metadata"]["name"], "thumbnails-1-x");
  EXPECT_EQ(pod["metadata"]["namespace"], "media");
  EXPECT_EQ(pod["metadata"]["labels"],
            Json::parse(R"({"app": "x", "holdfast.dev/worker-pool": "thumbnails",
                            "holdfast.dev/worker-hash": "0123456789abcdef"})"));
  EXPECT_EQ(pod["metadata"]["annotations"], Json::parse(R"({"note": "n"})"));
  const Json& owner = pod["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"], "WorkerPool");
  EXPECT_EQ(owner["uid"], "p-1");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
}

TEST(WorkerPod, TheAgentServesInTheFirstContainer) {
  const Json pod = made();
  EXPECT_THAT(pod["spec"]["containers"][0]["command"],
              ElementsAre(kAgentProgram, "serve", "--", "/bin/work", "-v"));
  EXPECT_EQ(pod["spec"]["initContainers"][0]["name"], "holdfast-agent");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["image"], "agent:1");
  EXPECT_EQ(pod["spec"]["initContainers"][1]["name"], "fetch");
  EXPECT_EQ(pod["spec"]["volumes"].size(), 2u);
  EXPECT_EQ(pod["spec"]["containers"][0]["volumeMounts"].size(), 2u);
  EXPECT_FALSE(pod["spec"]["containers"][1].contains("volumeMounts"));
}

TEST(WorkerPod, TheAgentHasItsSettings) {
  Json given = pod_template();
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_WORKER_POOL"), "thumbnails");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_LEASE_NAMESPACE"), "media");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_POD_NAME"), "thumbnails-1-x");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_POD_UID"),
            R"({"fieldRef":{"fieldPath":"metadata.uid"}})");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_LEASE_DURATION_SECONDS"), "15");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_SLOTS"), "4") << "ours, not the template's";
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_POD_GRACE_SECONDS"), "30");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_SLOTS_FOLDER"),
            std::string(injection::kAgentFolder) + "/slots");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_TERMINATION_LOG"), "(none)");
  EXPECT_EQ(variable_of(made(given), "A"), "a");
  given["spec"]["terminationGracePeriodSeconds"] = 120;
  given["spec"]["containers"][0]["terminationMessagePath"] = "/log";
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_POD_GRACE_SECONDS"), "120");
  EXPECT_EQ(variable_of(made(given), "HOLDFAST_TERMINATION_LOG"), "/log");
}

TEST(WorkerPod, WhatStandsInTheAgentsWayIsRefusedWithAdvice) {
  const auto refusal = [](const char* pointer, const char* value) {
    Json given = pod_template();
    given[Json::json_pointer(pointer)] = Json::parse(value);
    const Json pod = made(given);
    return pod.is_string() ? pod.get<std::string>() : "";
  };
  EXPECT_EQ(
      refusal("/spec/volumes", R"([{"name": "holdfast-agent", "emptyDir": {}}])"),
      "the template has a volume called holdfast-agent, which the pool needs for its agent: use another");
  EXPECT_EQ(refusal("/spec/containers/1/volumeMounts",
                    R"([{"name": "holdfast-credentials", "mountPath": "/m"}])"),
            "the template's container side mounts the volume holdfast-credentials, which belongs "
            "to the pool's agent: remove that mount");
  EXPECT_THAT(refusal("/spec/containers/0/env", R"([{"name": "HOLDFAST_CREDENTIALS"}])"),
              HasSubstr("HOLDFAST_CREDENTIALS, which the pool's agent reads there: take it out"));
  EXPECT_EQ(refusal("/spec/containers/0/command", "null"),
            "the pool needs the command of the first container: set "
            "spec.template.spec.containers[0].command");
  EXPECT_EQ(refusal("/spec", "null"), "spec.template has no spec: add one");
}

TEST(WorkerPod, NamesAreTheLowestThatAreFree) {
  const std::string first = worker_name("thumbnails", "p-1", 1);
  const std::string second = worker_name("thumbnails", "p-1", 2);
  EXPECT_TRUE(first.starts_with("thumbnails-1-"));
  EXPECT_THAT(free_worker_names("thumbnails", "p-1", {}, 2), ElementsAre(first, second));
  EXPECT_THAT(free_worker_names("thumbnails", "p-1", {first, "thumbnails-2-other"}, 1),
              ElementsAre(second));
  EXPECT_NE(worker_name("thumbnails", "p-2", 1), first) << "a pool that was made again";
}

// ---- What the pool reads of it

Json served_pod() {
  Json pod = made();
  pod["metadata"]["uid"] = "w-1";
  pod["metadata"]["resourceVersion"] = "5";
  pod["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z";
  pod["status"] = Json::parse(R"({"phase": "Running"})");
  return pod;
}

CachedWorkerPod decoded(const Json& json) {
  const kube::ObjectPtr object = decode_worker_pod(document(json));
  EXPECT_TRUE(object);
  return object ? static_cast<const CachedWorkerPod&>(*object) : CachedWorkerPod();
}

TEST(WorkerPod, IsReadAsItWasMade) {
  const CachedWorkerPod cached = decoded(served_pod());
  EXPECT_EQ(cached.pool_name, "thumbnails");
  EXPECT_EQ(cached.owner_uid, "p-1");
  EXPECT_EQ(cached.worker.uid, "w-1");
  EXPECT_EQ(cached.worker.name, "thumbnails-1-x");
  EXPECT_EQ(cached.worker.created, parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(cached.worker.hash, pool().hash);
  EXPECT_EQ(cached.worker.slots, 4);
  EXPECT_EQ(cached.lease_duration, std::chrono::seconds(15));
  EXPECT_FALSE(cached.worker.deleting || cached.worker.ended || cached.worker.cannot_start);
  EXPECT_EQ(cached.worker.trouble, "");
}

// What the agent reads is what counts, whoever starts it.
TEST(WorkerPod, AWebhookThatWrapsTheCommandHidesNoSetting) {
  Json pod = served_pod();
  Json& command = pod["spec"]["containers"][0]["command"];
  command.insert(command.begin(), "/wrapper");
  EXPECT_EQ(decoded(pod).lease_duration, std::chrono::seconds(15));
  EXPECT_EQ(decoded(pod).worker.slots, 4);
  pod["spec"]["containers"][1]["env"] =
      Json::parse(R"([{"name": "HOLDFAST_LEASE_DURATION_SECONDS", "value": "60"}])");
  EXPECT_EQ(decoded(pod).lease_duration, std::chrono::minutes(1)) << "either may be the agent";
  command.erase(command.begin());
  EXPECT_EQ(decoded(pod).lease_duration, std::chrono::seconds(15));
}

TEST(WorkerPod, SomebodyElsesPodIsNoWorker) {
  Json pod = served_pod();
  pod["metadata"]["ownerReferences"][0]["kind"] = "DurableJob";
  EXPECT_FALSE(decode_worker_pod(document(pod)));
  pod = served_pod();
  pod["metadata"]["ownerReferences"][0]["controller"] = false;
  EXPECT_FALSE(decode_worker_pod(document(pod)));
  pod = served_pod();
  pod["metadata"].erase("ownerReferences");
  EXPECT_FALSE(decode_worker_pod(document(pod)));
}

TEST(WorkerPod, SaysWhyItDoesNotStart) {
  const auto with = [](const char* status) {
    Json pod = served_pod();
    pod["status"] = Json::parse(status);
    return decoded(pod).worker;
  };
  const auto image = with(R"({"phase": "Pending", "containerStatuses": [{"name": "main", "state":
      {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]})");
  EXPECT_TRUE(image.cannot_start);
  EXPECT_EQ(image.trouble, "ImagePullBackOff: no such image");
  EXPECT_FALSE(with(R"({"phase": "Pending", "containerStatuses": [{"name": "main", "state":
      {"waiting": {"reason": "ContainerCreating"}}}]})")
                   .cannot_start);
  const auto exit = with(R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state":
      {"terminated": {"exitCode": 64, "reason": "Error", "message": "no token"}}}]})");
  EXPECT_TRUE(exit.ended && exit.failed);
  EXPECT_FALSE(exit.cannot_start);
  EXPECT_EQ(exit.trouble, "its container main ended with exit code 64: Error: no token");
  EXPECT_EQ(with(R"({"phase": "Failed", "reason": "Evicted", "message": "disk"})").trouble,
            "Evicted: disk");
  EXPECT_FALSE(with(R"({"phase": "Succeeded"})").failed);
}

TEST(WorkerPod, APodWithoutANodeSaysWhy) {
  Json pod = served_pod();
  pod["status"] = Json::parse(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
      "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]})");
  EXPECT_EQ(decoded(pod).worker.trouble, "it has no node: 0/3 nodes are available");
  EXPECT_FALSE(decoded(pod).worker.cannot_start) << "a node may come";
  EXPECT_EQ(decoded(pod).placement, reconciler::Placement::kUnschedulable);
}

TEST(WorkerPod, SaysSinceWhenItHasANode) {
  Json pod = served_pod();
  EXPECT_EQ(decoded(pod).placement, reconciler::Placement::kUnseen);
  pod["spec"]["nodeName"] = "n-1";
  pod["status"]["conditions"] = Json::parse(R"([{"type": "PodScheduled", "status": "True",
      "lastTransitionTime": "2026-01-02T04:00:00Z"}])");
  EXPECT_EQ(decoded(pod).placement, reconciler::Placement::kBound);
  EXPECT_EQ(decoded(pod).placed, parse_time("2026-01-02T04:00:00Z"));
}

// The agent's container is the worker; another one may run for ever.
TEST(WorkerPod, AWorkerHasEndedWithItsAgentsContainer) {
  const auto with = [](const char* main, const char* phase = "Running") {
    Json pod = served_pod();
    pod["status"] = {{"phase", phase},
                     {"containerStatuses",
                      {{{"name", "main"}, {"state", {{"terminated", Json::parse(main)}}}},
                       {{"name", "side"}, {"state", {{"running", Json::object()}}}}}}};
    return decoded(pod);
  };
  const CachedWorkerPod killed = with(R"({"exitCode": 137, "reason": "OOMKilled"})");
  EXPECT_TRUE(killed.dead && killed.worker.ended && killed.worker.failed);
  EXPECT_TRUE(killed.worker.out_of_memory);
  EXPECT_EQ(killed.worker.trouble, "its container main ended with exit code 137: OOMKilled");
  const CachedWorkerPod left = with(R"({"exitCode": 0, "reason": "Completed"})");
  EXPECT_TRUE(left.dead && left.worker.ended);
  EXPECT_FALSE(left.worker.failed || left.worker.out_of_memory);
  EXPECT_FALSE(with(R"({"exitCode": 137, "reason": "Error"})").worker.out_of_memory);
  EXPECT_FALSE(with(R"({"exitCode": 85, "reason": "OOMKilled"})").worker.out_of_memory)
      << "the agent has outlived the kill, and ended by itself";
  const CachedWorkerPod unseen = with(R"({"exitCode": 137, "reason": "ContainerStatusUnknown"})");
  EXPECT_FALSE(unseen.dead || unseen.worker.ended) << "its kubelet lost track of it";
}

TEST(WorkerPod, AnEditedLabelChangesNoSlots) {
  Json pod = served_pod();
  pod["metadata"]["labels"] = {{"holdfast.dev/worker-pool", "thumbnails"}};
  EXPECT_EQ(decoded(pod).worker.slots, 4);
  pod["spec"]["containers"][0]["env"] =
      Json::parse(R"([{"name": "HOLDFAST_SLOTS", "value": "x"}])");
  EXPECT_EQ(decoded(pod).worker.slots, 1);
}

TEST(WorkerPod, AnAgentWhoseLeaseDurationIsUnknownMayHaveTheLongest) {
  Json pod = served_pod();
  Json& environment = pod["spec"]["containers"][0]["env"];
  environment = Json::parse(R"([{"name": "HOLDFAST_LEASE_DURATION_SECONDS", "value": "1"}])");
  EXPECT_EQ(decoded(pod).lease_duration, std::chrono::seconds(1));
  for (const char* const value : {"", "x", "0", "-5", "99999"}) {
    environment[0]["value"] = value;
    EXPECT_EQ(decoded(pod).lease_duration, std::chrono::hours(1)) << value;
  }
  environment = Json::array();
  EXPECT_EQ(decoded(pod).lease_duration, std::chrono::hours(1));
}

}  // namespace
}  // namespace holdfast::pools
