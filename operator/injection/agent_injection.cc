#include "operator/injection/agent_injection.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/agent_protocol.h"
#include "operator/codecs/heartbeat_codec.h"
#include "reconciler/names.h"

namespace holdfast::injection {
namespace {

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

// `worker`: the name of the first container.
Json settings(const reconciler::Job& job, const reconciler::CreatePod& pod,
              const std::string& worker) {
  const auto& heartbeat = *job.spec.heartbeat;
  Json list = Json::array();
  const auto add = [&](const char* name, const std::string& value) {
    list.push_back(variable(name, value));
  };
  add("HOLDFAST_LEASE_NAMESPACE", job.namespace_);
  add("HOLDFAST_LEASE_NAME", codecs::lease_name(job, pod.run));
  add("HOLDFAST_LEASE_DURATION_SECONDS", std::to_string(heartbeat.lease_duration.count()));
  if (heartbeat.progress_deadline) {
    add("HOLDFAST_PROGRESS_DEADLINE_SECONDS", std::to_string(heartbeat.progress_deadline->count()));
  }
  add("HOLDFAST_POD_NAME", pod.name);
  list.push_back(pod_uid_variable());
  add("HOLDFAST_PROGRESS_FILE", std::string(kAgentFolder) + "/progress");
  const std::string deferred = deferred_codes(job.spec, worker);
  if (!deferred.empty()) {
    add(kDeferVariable, deferred);
    add(kDeferralsVariable, std::to_string(deferrals_of(job.status, pod.run)));
  }
  return list;
}

}  // namespace

Result<> inject_agent(const reconciler::Job& job, const reconciler::CreatePod& pod,
                      const std::string& image, Json& spec) {
  const Json& containers = at(spec, "containers");
  const bool has_worker = containers.is_array() && !containers.empty();
  const std::string worker = has_worker ? string_at(containers[0], "name") : "";
  const AgentPart agent{kHeartbeatUser,
                        "run",
                        image,
                        settings(job, pod, worker),
                        {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
                         "HOLDFAST_CREDENTIALS", "HOLDFAST_TERMINATION_LOG",
                         "HOLDFAST_PROGRESS_DEADLINE_SECONDS", kDeferVariable, kDeferralsVariable}};
  return add_agent(agent, spec);
}

}  // namespace holdfast::injection
