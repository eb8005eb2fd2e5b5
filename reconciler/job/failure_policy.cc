#include "reconciler/job/failure_policy.h"

#include <algorithm>

#include "reconciler/run/verdict.h"

namespace holdfast::reconciler {
namespace {

const char* name_of(PolicyAction action) {
  switch (action) {
    case PolicyAction::kCount:
      return "Count";
    case PolicyAction::kIgnore:
      return "Ignore";
    case PolicyAction::kFailIndex:
      return "FailIndex";
    case PolicyAction::kFailJob:
      return "FailJob";
    case PolicyAction::kDefer:
      return "Defer";
  }
  return "";
}

// A container whose end the kubelet did not see has a made-up exit code (137 or 255). A FailJob
// rule on it would fail the job because a node restarted. An agent's exit code reports a lost
// Lease. Both are losses, and say nothing about the workload.
bool is_workloads(const ContainerView& container) {
  return container.terminated->was_seen && !fenced_itself(container);
}

bool matches(const PolicyRule::ExitCodes& codes, const ContainerView& container) {
  return container.terminated && is_workloads(container) &&
         codes.matches(container.name, container.terminated->exit_code);
}

const ContainerView* match(const PolicyRule::ExitCodes& codes, const PodView& pod) {
  for (const bool init : {false, true}) {
    for (const ContainerView& container : pod.containers) {
      if (container.init == init && matches(codes, container)) return &container;
    }
  }
  return nullptr;
}

const PolicyRule::PodCondition* match(const std::vector<PolicyRule::PodCondition>& patterns,
                                      const PodView& pod) {
  for (const PolicyRule::PodCondition& condition : pod.conditions) {
    for (const PolicyRule::PodCondition& pattern : patterns) {
      if (condition.type == pattern.type && condition.status == pattern.status) return &condition;
    }
  }
  return nullptr;
}

// How the rule matches; empty: it does not.
std::string how_it_matches(const PolicyRule& rule, const std::string& pod_name,
                           const PodView& pod) {
  if (rule.exit_codes) {
    const ContainerView* const container = match(*rule.exit_codes, pod);
    if (!container) return "";
    return "Container " + container->name + " for pod " + pod_name + " failed with exit code " +
           std::to_string(container->terminated->exit_code);
  }
  const PolicyRule::PodCondition* const condition = match(rule.conditions, pod);
  return condition ? "Pod " + pod_name + " has condition " + condition->type : "";
}

}  // namespace

PolicyMatch match_failure_policy(const Spec& spec, const std::string& job_namespace,
                                 const PodView& pod) {
  if (pod.phase != PodPhase::kFailed) return {};
  const std::string pod_name = job_namespace + "/" + pod.name;
  for (std::size_t i = 0; i < spec.pod_failure_policy.size(); ++i) {
    const PolicyRule& rule = spec.pod_failure_policy[i];
    const std::string how = how_it_matches(rule, pod_name, pod);
    if (how.empty()) continue;
    const bool counts = rule.action == PolicyAction::kFailIndex && !spec.backoff_limit_per_index;
    return {counts ? PolicyAction::kCount : rule.action, &rule,
            how + " matching " + name_of(rule.action) + " rule at index " + std::to_string(i)};
  }
  return {};
}

}  // namespace holdfast::reconciler
