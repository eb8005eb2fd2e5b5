// batch/v1's podFailurePolicy: what a failed pod means for its run and its job. Pure.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
//
//   const PolicyMatch match = match_failure_policy(job.spec, job.namespace_, pod);
//   if (match.action == PolicyAction::kFailJob) fail(Reason::kPodFailurePolicy, match.message);
#pragma once

#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

struct PolicyMatch {
  PolicyAction action = PolicyAction::kCount;
  const PolicyRule* rule = nullptr;  // of the spec; null: no rule matches
  // In batch/v1's words, e.g. "Container main for pod ns/name failed with exit code 42 matching
  // FailJob rule at index 1". Empty: no rule matches.
  std::string message;
};

// What the first rule that matches the pod says. kCount: no rule matches, or the pod's phase is not
// Failed.
//
// A rule on exit codes looks at the regular containers first, then at the init containers and
// sidecars. The message names the first container that matches. An exit code of 0 matches no rule.
// Nor does an exit code that is not the workload's. Then the kubelet did not see the end, or the
// agent stopped the worker.
//
// A rule that has both exit codes and conditions uses its exit codes alone. FailIndex is kCount if
// the spec has no backoffLimitPerIndex, and later rules stay unused.
PolicyMatch match_failure_policy(const Spec& spec, const std::string& job_namespace,
                                 const PodView& pod);

}  // namespace holdfast::reconciler
