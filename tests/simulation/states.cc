#include "tests/simulation/states.h"

#include <algorithm>

#include "reconciler/names.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/objects.h"
#include "tests/support/run_of.h"

namespace holdfast::simulation {
namespace {

using reconciler::hash64;

std::uint64_t at_most(std::int64_t number, std::int64_t most) {
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(number, 0, most));
}

// Where a pod stands, its node included.
std::uint64_t pod_state(const Json& pod, const Cluster& cluster) {
  std::uint64_t state = hash64(string_at(at(pod, "status"), "phase"));
  const Json& meta = at(pod, "metadata");
  const std::string name = string_at(at(pod, "spec"), "nodeName");
  std::uint64_t node = 0;
  if (const Cluster::Node* const host = cluster.node(name)) {
    node = 1 + (host->exists ? 1u : 0u) + (host->reaches ? 2u : 0u) + (host->powered ? 4u : 0u);
  }
  const bool labelled = at(at(meta, "labels"), reconciler::kJobUidLabel).is_string();
  const bool held = !at(meta, "finalizers").empty();
  const bool started = !at(at(pod, "status"), "containerStatuses").empty();
  return mix(state, node * 16 + (is_deleting(pod) ? 1u : 0u) + (labelled ? 2u : 0u) +
                        (held ? 4u : 0u) + (started ? 8u : 0u));
}

}  // namespace

void States::seen_job(const Json& job, std::uint64_t replicas) {
  const Json& status = at(job, "status");
  const Json& spec = at(job, "spec");
  std::uint64_t state = hash64(string_at(status, "phase"));
  state = mix(state, at_most(int_at(status, "attempt"), 3));
  state = mix(state, at_most(int_at(status, "failures"), 2) * 3 +
                         at_most(int_at(status, "disruptions"), 2));
  state = mix(state, hash64(string_at(at(status, "waiting"), "reason")));
  const bool replaces_late = string_at(spec, "podReplacementPolicy") == "Failed";
  state = mix(state, (bool_at(spec, "suspend") ? 1u : 0u) + (bool_at(spec, "cancel") ? 2u : 0u) +
                         (is_deleting(job) ? 4u : 0u) + (replaces_late ? 8u : 0u));
  const Json& history = at(status, "history");
  if (!history.empty()) {
    const Json& last = history.back();
    state = mix(state, hash64(string_at(last, "outcome") + string_at(last, "reason")));
  }
  const Json& runs = at(status, "runs");
  state = mix(state, at_most(static_cast<std::int64_t>(runs.size()), 3));
  state = mix(state, (at(status, "completedIndexes").is_string() ? 1u : 0u) +
                         (at(status, "failedIndexes").is_string() ? 2u : 0u));
  const Json* const pod = gateway_.server().find(
      "pods", string_at(at(job, "metadata"), "namespace"), string_at(run_of(status), "podName"));
  state = mix(state, pod ? pod_state(*pod, cluster_) : 0);
  states_.insert(mix(state, replicas));
}

void States::seen_pod(const Json& pod, std::uint64_t replicas) {
  const Json& meta = at(pod, "metadata");
  for (const Json& owner : at(meta, "ownerReferences")) {
    const Json* const job = gateway_.server().find("durablejobs", string_at(meta, "namespace"),
                                                   string_at(owner, "name"));
    if (job) seen_job(*job, replicas);
  }
}

}  // namespace holdfast::simulation
