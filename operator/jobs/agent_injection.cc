#include "operator/jobs/agent_injection.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/agent_protocol.h"
#include "operator/jobs/agent_conflicts.h"
#include "operator/observe/heartbeat_codec.h"
#include "reconciler/names.h"

namespace holdfast::controller {
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

bool sets(const Json& environment, const std::string& name) {
  for (const Json& variable : environment) {
    if (string_at(variable, "name") == name) return true;
  }
  return false;
}

// The exit codes for which a Defer rule is the first that matches. Of a rule with NotIn the agent
// knows nothing: with it each question is a pod.
std::string deferred_codes(const reconciler::Spec& spec, const std::string& worker) {
  std::string list;
  std::set<int> seen;
  for (const reconciler::PolicyRule& rule : spec.pod_failure_policy) {
    const bool defers = rule.action == reconciler::PolicyAction::kDefer;
    if (!defers || !rule.exit_codes || !rule.exit_codes->in) continue;
    for (const int code : rule.exit_codes->values) {
      const auto& rules = spec.pod_failure_policy;
      const auto first = std::find_if(rules.begin(), rules.end(), [&](const auto& one) {
        return one.exit_codes && one.exit_codes->matches(worker, code);
      });
      if (first == rules.end() || &*first != &rule || !seen.insert(code).second) continue;
      list += (list.empty() ? "" : ",") + std::to_string(code) + ":" +
              std::to_string(rule.defer_for.count()) + ":" + std::to_string(rule.defer_limit);
    }
  }
  return list;
}

std::int64_t deferrals_of(const reconciler::Status& status, std::int64_t index) {
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const reconciler::Run& one) { return one.index == index; });
  return run == status.runs.end() ? 0 : run->deferrals;
}

Json settings(const reconciler::Job& job, const reconciler::CreatePod& pod, const Json& worker) {
  const auto& heartbeat = *job.spec.heartbeat;
  Json list = Json::array();
  const auto add = [&](const char* name, const std::string& value) {
    list.push_back({{"name", name}, {"value", value}});
  };
  add("HOLDFAST_LEASE_NAMESPACE", job.namespace_);
  add("HOLDFAST_LEASE_NAME", lease_name(job, pod.run));
  add("HOLDFAST_LEASE_DURATION_SECONDS", std::to_string(heartbeat.lease_duration.count()));
  if (heartbeat.progress_deadline) {
    add("HOLDFAST_PROGRESS_DEADLINE_SECONDS", std::to_string(heartbeat.progress_deadline->count()));
  }
  add("HOLDFAST_POD_NAME", pod.name);
  list.push_back({{"name", "HOLDFAST_POD_UID"},
                  {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.uid"}}}}}});
  add("HOLDFAST_PROGRESS_FILE", std::string(kAgentFolder) + "/progress");
  const std::string deferred = deferred_codes(job.spec, string_at(worker, "name"));
  if (!deferred.empty()) {
    add(kDeferVariable, deferred);
    add(kDeferralsVariable, std::to_string(deferrals_of(job.status, pod.run)));
  }
  const std::string log = string_at(worker, "terminationMessagePath");
  if (!log.empty()) add("HOLDFAST_TERMINATION_LOG", log);
  return list;
}

// Variables that the agent reads, but the operator does not always set. The agent would use the
// template's values. They are refused, not dropped, because the author had a reason for them.
Status check_environment(const Json& worker, const Json& own) {
  for (const Json& variable : at(worker, "env")) {
    const std::string name = string_at(variable, "name");
    for (const char* const read :
         {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HOLDFAST_CREDENTIALS",
          "HOLDFAST_TERMINATION_LOG", "HOLDFAST_PROGRESS_DEADLINE_SECONDS", kDeferVariable,
          kDeferralsVariable}) {
      if (name == read && !sets(own, name)) {
        std::string advice = "the template's first container has the environment variable ";
        advice += name;
        advice +=
            ", which spec.heartbeat's agent reads there: take it out (where your program needs it, "
            "its command can set it: \"/usr/bin/env\", \"";
        advice += name;
        advice += "=...\", ...), or create the job without heartbeat";
        return make_error(ErrorCode::kInvalid, std::move(advice));
      }
    }
  }
  return Unit{};
}

void append(Json& object, const char* key, const Json& items) {
  Json& list = object[key];
  if (!list.is_array()) list = Json::array();
  for (const Json& item : items) list.push_back(item);
}

}  // namespace

Status inject_agent(const reconciler::Job& job, const reconciler::CreatePod& pod,
                    const std::string& image, Json& spec) {
  const Status free = check_agent_conflicts(spec);
  if (!free) return free.error();
  if (!at(spec, "containers").is_array() || spec["containers"].empty() ||
      !at(spec["containers"][0], "command").is_array()) {
    return make_error(ErrorCode::kInvalid,
                      "spec.heartbeat needs the command of the first container: set "
                      "spec.template.spec.containers[0].command");
  }
  Json& worker = spec["containers"][0];
  Json environment = settings(job, pod, worker);
  const Status unread = check_environment(worker, environment);
  if (!unread) return unread.error();
  Json first = Json::array({installer(image, worker)});
  for (const Json& container : at(spec, "initContainers")) first.push_back(container);
  spec["initContainers"] = std::move(first);
  append(spec, "volumes", volumes());

  Json command = Json::array({kAgentProgram, "run", "--"});
  for (const Json& word : worker["command"]) command.push_back(word);
  worker["command"] = std::move(command);
  append(worker, "volumeMounts",
         Json::array({{{"name", kAgentName}, {"mountPath", kAgentFolder}},
                      {{"name", kAgentCredentials},
                       {"mountPath", kAgentCredentialsFolder},
                       {"readOnly", true}}}));
  // First, so that the template's own variables can refer to them. On equal names ours win.
  for (const Json& variable : at(worker, "env")) {
    if (!sets(environment, string_at(variable, "name"))) environment.push_back(variable);
  }
  worker["env"] = std::move(environment);
  return Unit{};
}

}  // namespace holdfast::controller
