// The job's Lease in JSON, and what a pod with an agent has beside its template.
#include "operator/codecs/heartbeat_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/codecs/pod_codec.h"
#include "operator/injection/pod_body.h"
#include "reconciler/names.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

using ::testing::HasSubstr;

reconciler::Job beating_job() {
  reconciler::Job job;
  job.namespace_ = "media";
  job.name = "encode";
  job.uid = "u-1";
  job.spec.heartbeat = reconciler::Heartbeat{std::chrono::seconds(30), std::chrono::seconds(90)};
  return job;
}

Json stored(const std::string& body) {
  Json lease = Json::parse(body);
  lease["metadata"]["uid"] = "lease-uid";
  lease["metadata"]["resourceVersion"] = "12";
  return lease;
}

const CachedHeartbeat& as_heartbeat(const kube::ObjectPtr& object) {
  return static_cast<const CachedHeartbeat&>(*object);
}

TEST(HeartbeatCodec, WhatIsWrittenIsReadBack) {
  const reconciler::WriteLease write{"lease-uid", 11, 3, "encode-3-x/pod-uid",
                                     "encode-3-x/pod-uid"};
  const Json lease =
      stored(heartbeat_body(beating_job(), write, "7-of-32", *parse_time("2026-01-02T03:04:05Z")));
  EXPECT_EQ(lease["metadata"]["name"], "holdfast-u-1");
  EXPECT_EQ(lease["metadata"]["labels"]["holdfast.dev/job-uid"], "u-1");
  EXPECT_EQ(lease["metadata"]["labels"]["holdfast.dev/shard"], "7-of-32");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"], 30);
  const kube::ObjectPtr object = decode_heartbeat(document(lease));
  ASSERT_TRUE(object);
  const CachedHeartbeat& read = as_heartbeat(object);
  EXPECT_EQ(read.owner_uid, "u-1");
  EXPECT_EQ(read.job_name, "encode");
  EXPECT_EQ(read.shard_label, "7-of-32");
  EXPECT_EQ(read.lease.holder, write.holder);
  EXPECT_EQ(read.lease.granted, write.granted);
  EXPECT_EQ(read.lease.attempt, 3);
  EXPECT_EQ(read.lease.acquired, parse_time("2026-01-02T03:04:05Z"));
  EXPECT_FALSE(read.lease.renewed);
  EXPECT_FALSE(read.lease.ended);
}

// The API server then keeps no record of who wrote which field, and renewals cost it less.
TEST(HeartbeatCodec, AGrantAloneResetsTheManagedFields) {
  const Json grant =
      stored(heartbeat_body(beating_job(), {"lease-uid", 11, 3, "p/u", "p/u"}, "7-of-32", Time{}));
  EXPECT_EQ(at(at(grant, "metadata"), "managedFields"), Json::array({Json::object()}));
  const Json take =
      stored(heartbeat_body(beating_job(), {"lease-uid", 11, 3, "", "p/u"}, "7-of-32", Time{}));
  EXPECT_FALSE(take["metadata"].contains("managedFields"));
}

TEST(HeartbeatCodec, ALeaseWithoutHolderHasNoHolderField) {
  const reconciler::WriteLease take{"lease-uid", 11, 3, "", "encode-2-x/pod-uid"};
  const Json lease = stored(heartbeat_body(beating_job(), take, "7-of-32", Time{}));
  EXPECT_FALSE(lease["spec"].contains("holderIdentity"));
  EXPECT_FALSE(lease["spec"].contains("renewTime"));
  EXPECT_EQ(as_heartbeat(decode_heartbeat(document(lease))).lease.granted, "encode-2-x/pod-uid");
}

// From many runs to one and back the job's Leases have other names.
TEST(HeartbeatCodec, ATakeOfALeaseThatIsOverHasTheNameThatItHas) {
  reconciler::WriteLease take{"lease-uid", 11, 3, "", "encode-2-x/pod-uid"};
  take.over = true;
  reconciler::Job job = beating_job();
  const auto name = [&] {
    return stored(heartbeat_body(job, take, "7-of-32", Time{}))["metadata"]["name"];
  };
  EXPECT_EQ(name(), reconciler::heartbeat_lease_name(job.uid, 0));
  job.spec.completions = 2;
  take.run = reconciler::kSingleLease;
  EXPECT_EQ(name(), reconciler::heartbeat_lease_name(job.uid, std::nullopt));
}

TEST(HeartbeatCodec, WhatAnAgentSaysIsReadAndNonsenseIsNothing) {
  Json lease = stored(heartbeat_body(beating_job(), {"", 0, 1, "p/u", "p/u"}, "7-of-32", Time{}));
  lease["spec"]["renewTime"] = "2026-01-02T03:04:05.000000Z";
  Json& annotations = lease["metadata"]["annotations"];
  annotations["holdfast.dev/progress"] = "7";
  annotations["holdfast.dev/progress-age"] = "12.5";
  annotations["holdfast.dev/progress-message"] = std::string(400, 'x');
  annotations["holdfast.dev/ended"] = "0";
  const kube::ObjectPtr decoded = decode_heartbeat(document(lease));
  EXPECT_TRUE(as_heartbeat(decoded).lease.renewed);
  EXPECT_TRUE(as_heartbeat(decoded).lease.ended);
  EXPECT_EQ(as_heartbeat(decoded).mark, "7");
  EXPECT_EQ(as_heartbeat(decoded).lease.progress_age, std::chrono::milliseconds(12500));
  EXPECT_EQ(as_heartbeat(decoded).lease.progress_message.size(), 256u);
  for (const char* const age : {"", "soon", "nan", "inf", "-5", "1e400", "12 s"}) {
    annotations["holdfast.dev/progress-age"] = age;
    EXPECT_EQ(as_heartbeat(decode_heartbeat(document(lease))).lease.progress_age, Duration::zero())
        << age;
  }
  annotations.erase("holdfast.dev/granted");
  EXPECT_EQ(as_heartbeat(decode_heartbeat(document(lease))).lease.granted, "unknown");
}

// Who may write the annotation is not only the agent.
TEST(HeartbeatCodec, AProgressMessageIsOneBoundedLineWhoeverWroteIt) {
  Json lease = stored(heartbeat_body(beating_job(), {"", 0, 1, "p/u", "p/u"}, "7-of-32", Time{}));
  Json& message = lease["metadata"]["annotations"]["holdfast.dev/progress-message"];
  message = " 42 %\n\x1b[31mdone\r\x01\xC2\x85!\t";
  EXPECT_EQ(as_heartbeat(decode_heartbeat(document(lease))).lease.progress_message,
            "42 %  [31mdone   !");
  message = std::string(255, 'x') + "\xE2\x82\xAC";
  EXPECT_EQ(as_heartbeat(decode_heartbeat(document(lease))).lease.progress_message.size(), 255u);
}

TEST(HeartbeatCodec, ALeaseThatNoJobOwnsIsLeftOut) {
  Json lease = stored(heartbeat_body(beating_job(), {"", 0, 1, "p/u", "p/u"}, "7-of-32", Time{}));
  lease["metadata"]["ownerReferences"][0]["kind"] = "Job";
  EXPECT_FALSE(decode_heartbeat(document(lease)));
  lease["metadata"].erase("ownerReferences");
  EXPECT_FALSE(decode_heartbeat(document(lease)));
}

Json plain_template() {
  return Json::parse(R"({"spec": {
    "securityContext": {"runAsNonRoot": true},
    "initContainers": [{"name": "fetch", "image": "fetcher"}],
    "volumes": [{"name": "data", "emptyDir": {}}],
    "containers": [
      {"name": "main", "image": "worker", "command": ["/bin/work", "--fast"], "args": ["x"],
       "env": [{"name": "HOLDFAST_LEASE_NAME", "value": "mine"}, {"name": "A", "value": "b"}],
       "resources": {"limits": {"cpu": "1"}},
       "securityContext": {"privileged": true, "runAsUser": 1000,
                           "capabilities": {"add": ["NET_ADMIN"]}}},
      {"name": "side", "image": "logger", "command": ["/bin/log"]}]}})");
}

Json spec_with_agent(const Json& given = plain_template()) {
  const Result<std::string> body =
      injection::pod_body(beating_job(), given.dump(), {1, "encode-1-x"}, "agent:1", "7-of-32");
  return body ? Json::parse(*body)["spec"] : Json(body.error().message);
}

TEST(AgentInjection, TheAgentStandsBeforeTheFirstContainersCommandAndNowhereElse) {
  const Json spec = spec_with_agent();
  EXPECT_EQ(spec["containers"][0]["command"],
            Json({"/holdfast/agent", "run", "--", "/bin/work", "--fast"}));
  EXPECT_EQ(spec["containers"][0]["args"], Json({"x"}));
  EXPECT_EQ(spec["containers"][0]["image"], "worker");
  EXPECT_EQ(spec["containers"][1]["command"], Json({"/bin/log"}));
  EXPECT_FALSE(spec["containers"][1].contains("volumeMounts"));
  ASSERT_EQ(spec["initContainers"].size(), 2u);
  EXPECT_EQ(spec["initContainers"][0]["image"], "agent:1");
  EXPECT_EQ(spec["initContainers"][1]["name"], "fetch");
  EXPECT_EQ(spec["volumes"].size(), 3u);
}

TEST(AgentInjection, TheInstallerIsAdmittedWhereTheWorkerIsAndMayDoNothing) {
  const Json installer = spec_with_agent()["initContainers"][0];
  EXPECT_EQ(installer["resources"], Json::parse(R"({"limits": {"cpu": "1"}})"));
  EXPECT_EQ(installer["securityContext"],
            Json::parse(R"({"runAsUser": 1000, "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]}})"));
}

// The node's disk may hang while the agent has a child to kill.
TEST(AgentInjection, ItsProgramAndItsFilesAreInMemoryAndBounded) {
  const Json volume = spec_with_agent()["volumes"][1];
  EXPECT_EQ(volume, Json::parse(R"({"name": "holdfast-agent",
                                    "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}})"));
}

TEST(AgentInjection, ItsSettingsWinOverTheTemplates) {
  const Json env = spec_with_agent()["containers"][0]["env"];
  std::map<std::string, std::string> values;
  for (const Json& variable : env) {
    EXPECT_TRUE(values.emplace(variable["name"], variable.value("value", "")).second) << variable;
  }
  EXPECT_EQ(values["HOLDFAST_LEASE_NAME"], "holdfast-u-1");
  EXPECT_EQ(values["HOLDFAST_LEASE_DURATION_SECONDS"], "30");
  EXPECT_EQ(values["HOLDFAST_PROGRESS_DEADLINE_SECONDS"], "90");
  EXPECT_EQ(values["HOLDFAST_POD_NAME"], "encode-1-x");
  EXPECT_EQ(values["HOLDFAST_ATTEMPT"], "1");
  EXPECT_EQ(values["A"], "b");
  EXPECT_EQ(values.count("HOLDFAST_TERMINATION_LOG"), 0u);
}

TEST(AgentInjection, ATemplateThatUsesItsNamesIsRefusedWithTheWayOut) {
  Json volume = plain_template();
  volume["spec"]["volumes"][0]["name"] = "holdfast-agent";
  Json credentials = plain_template();
  credentials["spec"]["volumes"][0]["name"] = "holdfast-credentials";
  Json init = plain_template();
  init["spec"]["initContainers"][0]["name"] = "holdfast-agent";
  Json container = plain_template();
  container["spec"]["containers"][1]["name"] = "holdfast-agent";
  Json mount = plain_template();
  mount["spec"]["containers"][0]["volumeMounts"] =
      Json::parse(R"([{"name": "data", "mountPath": "/holdfast/"}])");
  for (const Json& given : {volume, credentials, init, container, mount}) {
    EXPECT_THAT(spec_with_agent(given).get<std::string>(), HasSubstr("create the job without"));
  }
  Json silent = plain_template();
  silent["spec"]["containers"][0].erase("command");
  EXPECT_THAT(spec_with_agent(silent).get<std::string>(), HasSubstr("containers[0].command"));
}

TEST(AgentInjection, AVariableThatTheAgentWouldBelieveIsRefusedWithTheWayOut) {
  const auto with = [](const std::string& name) {
    Json given = plain_template();
    given["spec"]["containers"][0]["env"].push_back({{"name", name}, {"value", "x"}});
    return given;
  };
  for (const std::string name : {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
                                 "HOLDFAST_CREDENTIALS", "HOLDFAST_TERMINATION_LOG"}) {
    const Json refused = spec_with_agent(with(name));
    ASSERT_TRUE(refused.is_string()) << name;
    EXPECT_THAT(refused.get<std::string>(), HasSubstr("variable " + name + ","));
    EXPECT_THAT(refused.get<std::string>(), HasSubstr("create the job without heartbeat"));
  }
  // Where the operator sets it, its own wins.
  EXPECT_TRUE(spec_with_agent(with("HOLDFAST_PROGRESS_DEADLINE_SECONDS")).is_object());
  Json logging = with("HOLDFAST_TERMINATION_LOG");
  logging["spec"]["containers"][0]["terminationMessagePath"] = "/dev/log";
  EXPECT_TRUE(spec_with_agent(logging).is_object());
  reconciler::Job job = beating_job();
  job.spec.heartbeat->progress_deadline.reset();
  const Json given = with("HOLDFAST_PROGRESS_DEADLINE_SECONDS");
  EXPECT_FALSE(injection::pod_body(job, given.dump(), {1, "encode-1-x"}, "agent:1", "7-of-32"));
  // The other containers have no agent.
  Json side = plain_template();
  side["spec"]["containers"][1]["env"] = {{{"name", "KUBERNETES_SERVICE_HOST"}, {"value", "x"}}};
  EXPECT_TRUE(spec_with_agent(side).is_object());
}

reconciler::PodView pod_as_admitted(const Json& spec, const char* ended) {
  Json pod = {{"metadata", {{"name", "encode-1-x"}, {"uid", "pod-uid"}, {"resourceVersion", "5"}}},
              {"spec", spec}};
  for (const Json& container : spec["containers"]) {
    const Json state = container["name"] == ended ? Json{{"terminated", {{"exitCode", 0}}}}
                                                  : Json{{"running", Json::object()}};
    pod["status"]["containerStatuses"].push_back({{"name", container["name"]}, {"state", state}});
  }
  return static_cast<const CachedPod&>(*decode_pod(document(pod))).pod;
}

std::string worker_in(const reconciler::PodView& pod) {
  std::string found;
  for (const auto& container : pod.containers) {
    if (container.worker) found += container.name;
  }
  return found;
}

TEST(AgentInjection, TheWorkerIsTheContainerUnderTheAgentWhereverAWebhookPutsItsOwn) {
  Json spec = spec_with_agent();
  spec["containers"].insert(spec["containers"].begin(),
                            Json{{"name", "proxy"}, {"command", {"/bin/proxy", "run"}}});
  EXPECT_EQ(worker_in(pod_as_admitted(spec, "proxy")), "main");
  EXPECT_EQ(worker_in(pod_as_admitted(plain_template()["spec"], "side")), "main")
      << "without an agent it is the first";
}

TEST(AgentInjection, AJobWithoutHeartbeatHasNoAgent) {
  reconciler::Job job = beating_job();
  job.spec.heartbeat.reset();
  const Json spec = Json::parse(*injection::pod_body(job, plain_template().dump(),
                                                     {1, "encode-1-x"}, "a", "7-of-32"))["spec"];
  EXPECT_EQ(spec["initContainers"].size(), 1u);
  EXPECT_EQ(spec["volumes"].size(), 1u);
  EXPECT_EQ(spec["containers"][0]["command"], Json({"/bin/work", "--fast"}));
}

TEST(HeartbeatCodec, TheCheckpointStaysWhenTheLeaseChangesHands) {
  reconciler::WriteLease write{"lease-uid", 11, 3, "", "encode-2-x/pod-uid"};
  write.checkpoint = "page 7";
  const Json taken = stored(heartbeat_body(beating_job(), write, "7-of-32", Time{}));
  const auto read = decode_heartbeat(document(taken));
  ASSERT_TRUE(read);
  EXPECT_EQ(as_heartbeat(read).lease.checkpoint, "page 7");
  write.checkpoint.clear();
  EXPECT_FALSE(Json::parse(heartbeat_body(beating_job(), write, "7-of-32",
                                          Time{}))["metadata"]["annotations"]
                   .contains("holdfast.dev/checkpoint"));
}

}  // namespace
}  // namespace holdfast::codecs
