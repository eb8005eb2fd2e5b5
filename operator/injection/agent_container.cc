#include "operator/injection/agent_container.h"

#include <algorithm>
#include <utility>

#include "core/agent_protocol.h"

namespace holdfast::injection {
namespace {

constexpr int kTokenSeconds = 3600;  // the kubelet renews it at four fifths
// Room for the program (at most 10 MB) twice, because a new sandbox of the pod replaces it, and for
// small files: its state and the child's progress.
constexpr const char* kAgentVolumeLimit = "32Mi";

// Like the worker's, so that policies that admit the worker admit this too, but without everything
// that copying a file does not need.
Json installer_security(const Json& worker) {
  Json security = at(worker, "securityContext");
  if (!security.is_object()) security = Json::object();
  security.erase("privileged");
  security.erase("procMount");
  security["allowPrivilegeEscalation"] = false;
  security["capabilities"] = {{"drop", Json::array({"ALL"})}};
  return security;
}

Json installer(const std::string& image, const Json& worker) {
  Json container = {
      {"name", kAgentName},
      {"image", image},
      {"imagePullPolicy", "IfNotPresent"},
      {"command", Json::array({"/holdfast-agent", "install", kAgentFolder})},
      {"securityContext", installer_security(worker)},
      {"volumeMounts", Json::array({{{"name", kAgentName}, {"mountPath", kAgentFolder}}})}};
  // Namespaces with a quota refuse containers without them.
  if (at(worker, "resources").is_object()) container["resources"] = at(worker, "resources");
  return container;
}

// In memory, because the agent's program and files must not hang with the node's disk.
Json volumes() {
  return Json::array(
      {{{"name", kAgentName},
        {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", kAgentVolumeLimit}}}},
       {{"name", kAgentCredentials},
        {"projected",
         {{"sources", Json::array({{{"serviceAccountToken",
                                     {{"path", "token"}, {"expirationSeconds", kTokenSeconds}}}},
                                   {{"configMap",
                                     {{"name", "kube-root-ca.crt"},
                                      {"items", Json::array({{{"key", "ca.crt"},
                                                              {"path", "ca.crt"}}})}}}}})}}}}});
}

// Variables that the agent reads, but the operator does not always set. The agent would use the
// template's values. They are refused, not dropped, because the author had a reason for them.
Result<> check_environment(const AgentUser& user, const Json& worker,
                           const std::set<std::string>& reads, const Json& own) {
  for (const Json& variable : at(worker, "env")) {
    const std::string name = string_at(variable, "name");
    if (reads.count(name) == 0 || sets_variable(own, name)) continue;
    return make_error(ErrorCode::kInvalid,
                      "the template's first container has the environment variable " + name +
                          ", which " + user.name +
                          "'s agent reads there: take it out (where your program needs it, its "
                          "command can set it: \"/usr/bin/env\", \"" +
                          name + "=...\", ...)" + user.otherwise);
  }
  return Unit{};
}

void append(Json& object, const char* key, const Json& items) {
  Json& list = object[key];
  if (!list.is_array()) list = Json::array();
  for (const Json& item : items) list.push_back(item);
}

}  // namespace

Json variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

bool sets_variable(const Json& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const Json& variable) { return string_at(variable, "name") == name; });
}

Json pod_uid_variable() {
  return {{"name", "HOLDFAST_POD_UID"},
          {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.uid"}}}}}};
}

Result<> add_agent(const AgentPart& agent, Json& spec) {
  const Result<> free = check_agent_conflicts(agent.user, spec);
  if (!free) return free.error();
  if (!at(spec, "containers").is_array() || spec["containers"].empty() ||
      !at(spec["containers"][0], "command").is_array() ||
      spec["containers"][0]["command"].empty()) {
    return make_error(ErrorCode::kInvalid, std::string(agent.user.name) +
                                               " needs the command of the first container: set "
                                               "spec.template.spec.containers[0].command");
  }
  Json& worker = spec["containers"][0];
  Json environment = agent.environment;
  const std::string log = string_at(worker, "terminationMessagePath");
  if (!log.empty()) environment.push_back(variable("HOLDFAST_TERMINATION_LOG", log));
  const Result<> unread = check_environment(agent.user, worker, agent.reads, environment);
  if (!unread) return unread.error();
  Json first = Json::array({installer(agent.image, worker)});
  for (const Json& container : at(spec, "initContainers")) first.push_back(container);
  spec["initContainers"] = std::move(first);
  append(spec, "volumes", volumes());

  Json command = Json::array({kAgentProgram, agent.command, "--"});
  for (const Json& word : worker["command"]) command.push_back(word);
  worker["command"] = std::move(command);
  append(worker, "volumeMounts",
         Json::array({{{"name", kAgentName}, {"mountPath", kAgentFolder}},
                      {{"name", kAgentCredentials},
                       {"mountPath", kAgentCredentialsFolder},
                       {"readOnly", true}}}));
  // First, so that the template's own variables can refer to them. On equal names ours win.
  for (const Json& given : at(worker, "env")) {
    if (!sets_variable(environment, string_at(given, "name"))) environment.push_back(given);
  }
  worker["env"] = std::move(environment);
  return Unit{};
}

}  // namespace holdfast::injection
