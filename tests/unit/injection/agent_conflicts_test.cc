// What of a template stands in the way of the agent, through whichever door it comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "operator/codecs/pod_codec.h"
#include "operator/injection/pod_body.h"

namespace holdfast::injection {
namespace {

using ::testing::HasSubstr;

// A template with a part of it replaced: {"containers", 0, "volumeMounts"}, say.
Json with(const std::string& pointer, const char* value) {
  Json given = Json::parse(R"({"spec": {
    "volumes": [{"name": "data", "emptyDir": {}}],
    "initContainers": [{"name": "fetch", "image": "fetcher"}],
    "containers": [{"name": "main", "image": "worker", "command": ["/bin/work"]},
                   {"name": "side", "image": "logger", "command": ["/bin/log"]}]}})");
  given["spec"][Json::json_pointer(pointer)] = Json::parse(value);
  return given;
}

// The pod's spec, or why there is none.
Json made_of(const Json& given) {
  reconciler::Job job;
  job.name = "encode";
  job.uid = "u-1";
  job.spec.heartbeat = reconciler::Heartbeat{std::chrono::seconds(30), std::nullopt};
  const Result<std::string> body =
      pod_body(job, given.dump(), {1, "encode-1-x"}, "agent:1", "7-of-32");
  return body ? Json::parse(*body)["spec"] : Json(body.error().message);
}

void refuses(const Json& given, const std::string& words) {
  const Json made = made_of(given);
  ASSERT_TRUE(made.is_string()) << words;
  EXPECT_THAT(made.get<std::string>(), HasSubstr(words));
}

std::string mount_at(const std::string& path) {
  return R"([{"name": "data", "mountPath": ")" + path + R"("}])";
}

TEST(AgentConflicts, NoContainerOfTheTemplateGetsTheAgentsVolumes) {
  for (const char* const container : {"/containers/0", "/containers/1", "/initContainers/0"}) {
    const std::string mounts = std::string(container) + "/volumeMounts";
    refuses(with(mounts, R"([{"name": "data", "mountPath": "/a"},
                             {"name": "holdfast-agent", "mountPath": "/mine"}])"),
            "mounts the volume holdfast-agent");
    refuses(with(mounts, R"([{"name": "holdfast-credentials", "mountPath": "/mine",
                              "subPath": "token"}])"),
            "mounts the volume holdfast-credentials");
    refuses(with(std::string(container) + "/volumeDevices",
                 R"([{"name": "holdfast-agent", "devicePath": "/dev/mine"}])"),
            "mounts the volume holdfast-agent");
  }
  refuses(with("/ephemeralContainers", R"([{"name": "debug", "image": "x", "volumeMounts": [
                 {"name": "holdfast-credentials", "mountPath": "/mine"}]}])"),
          "container debug mounts the volume holdfast-credentials");
}

TEST(AgentConflicts, NothingOfTheTemplateStandsInTheAgentsFoldersHoweverThePathIsWritten) {
  for (const char* const path :
       {"/holdfast", "/holdfast/", "/holdfast/.", "/holdfast//", "//holdfast", "holdfast",
        "/./holdfast", "/x/../holdfast", "/../holdfast", "/holdfast/agent", "/holdfast//agent",
        "/holdfast/progress", "/holdfast/x/..", "/holdfast/deep/down"}) {
    refuses(with("/containers/0/volumeMounts", mount_at(path).c_str()), "within /holdfast,");
  }
  for (const char* const path :
       {"/var/run/secrets/holdfast.dev", "/var/run/secrets/holdfast.dev/token",
        "/run/secrets/holdfast.dev", "/run/secrets/holdfast.dev/ca.crt",
        "/var/run/../run/secrets/holdfast.dev/", "/run//secrets/holdfast.dev/..data"}) {
    refuses(with("/containers/0/volumeMounts", mount_at(path).c_str()),
            "within /var/run/secrets/holdfast.dev,");
  }
}

TEST(AgentConflicts, AMountIsNotTheOnlyThingThatIsPutAtAPath) {
  refuses(
      with("/containers/0/volumeDevices", R"([{"name": "data", "devicePath": "/holdfast/agent"}])"),
      "volumeDevices at /holdfast/agent");
  refuses(with("/containers/0/terminationMessagePath", R"("/holdfast/./agent")"),
          "terminationMessagePath at /holdfast/./agent");
  refuses(with("/containers/0/terminationMessagePath", R"("/run/secrets/holdfast.dev/token")"),
          "terminationMessagePath at");
}

TEST(AgentConflicts, TheAgentIsTheFirstProcessAndNothingStartsBeforeIt) {
  refuses(with("/shareProcessNamespace", "true"), "remove shareProcessNamespace");
  refuses(with("/containers/0/lifecycle", R"({"postStart": {"exec": {"command": ["x"]}}})"),
          "let the command do it");
  refuses(with("/containers/0/command", "[]"), "needs the command of the first container");
  for (const Json& given :
       {with("/shareProcessNamespace", "false"), with("/shareProcessNamespace", "null"),
        with("/containers/0/lifecycle", R"({"preStop": {"exec": {"command": ["x"]}}})"),
        with("/containers/1/lifecycle", R"({"postStart": {"exec": {"command": ["x"]}}})")}) {
    EXPECT_TRUE(made_of(given).is_object()) << made_of(given);
  }
}

TEST(AgentConflicts, WhatARefusalQuotesIsOneBoundedLine) {
  const Json made = made_of(with("/containers/0/terminationMessagePath", R"("/holdfast/a\nb")"));
  EXPECT_THAT(made.get<std::string>(), HasSubstr("at /holdfast/a b,"));
}

TEST(AgentConflicts, PathsBesideAndAboveAreTheTemplatesOwn) {
  for (const char* const path : {"/holdfast2", "/holdfas", "/data/holdfast", "/run", "/var/run",
                                 "/var/run/secrets", "/run/secrets/holdfast.devel", "/var"}) {
    EXPECT_TRUE(made_of(with("/containers/0/volumeMounts", mount_at(path).c_str())).is_object())
        << path;
  }
  // The agent is in the first container alone.
  for (const char* const container : {"/containers/1", "/initContainers/0"}) {
    const std::string mounts = std::string(container) + "/volumeMounts";
    EXPECT_TRUE(made_of(with(mounts, mount_at("/holdfast").c_str())).is_object()) << container;
  }
}

}  // namespace
}  // namespace holdfast::injection
