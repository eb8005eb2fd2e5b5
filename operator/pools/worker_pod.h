// Builds the pod of a warm worker, and reads what the pool needs to know of one. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/kube/object.h"
#include "core/json_fwd.h"
#include "core/result.h"
#include "core/worker_protocol.h"
#include "reconciler/pool/size.h"

namespace holdfast::pools {

// The folder in which the agent keeps a folder for each slot.
inline constexpr const char* kSlotsFolder = "/holdfast/slots";

// The hash of all that a pool's pods are made from. Another hash: a worker of another template. The
// agent's image is not part of it: a new version of Holdfast replaces no worker.
std::string worker_hash(const std::string& pod_template, const reconciler::PoolSpec& spec);

// "<pool>-<number>-<five characters of the pool UID's hash>", from number 1.
std::string worker_name(const std::string& pool, const std::string& pool_uid, std::int64_t number);

// The first `count` names that no observed pod has. Pods that have ended or are being deleted
// count, too. So a creation is tried again under the same name if its answer was lost:
// AlreadyExists then means that it was done.
std::vector<std::string> free_worker_names(const std::string& pool, const std::string& pool_uid,
                                           const std::set<std::string>& taken, std::int64_t count);

// Whose pod it is.
struct WorkerPool {
  std::string name;
  std::string namespace_;
  std::string uid;
  std::string hash;
  reconciler::PoolSpec spec;
  std::vector<std::string> avoid = {};  // PoolPlan::avoid
};

// The owner references of what belongs to the pool: pods and Leases.
Json pool_owner(const WorkerPool& pool);

// The body of the POST: the template with our labels, owner reference and restartPolicy Never. The
// agent serves in the first container, whose command runs each attempt. An error says what to
// change in the template.
Result<std::string> worker_pod_body(const WorkerPool& pool, const std::string& pod_template,
                                    const std::string& pod_name, const std::string& agent_image);

// A worker's pod in the cache.
struct CachedWorkerPod : kube::Object {
  std::string pool_name;  // of the WorkerPool that owns it; owner_uid is its UID
  // With which its agent runs: how long its processes may outlast its last renewal.
  std::chrono::seconds lease_duration{0};
  reconciler::WorkerPod worker;
  // Its kubelet saw the agent's container terminate, or all containers of a pod that has ended.
  // Else a process may run on: the pod collector, for example, fails pods of lost nodes.
  bool dead = false;
  std::optional<PodEnd> end;  // it was deleted
  // Whether it has a node, and since when, as it says itself.
  reconciler::Placement placement = reconciler::Placement::kUnseen;
  std::optional<Time> placed;
};
using WorkerPodPtr = std::shared_ptr<const CachedWorkerPod>;

// What the cache of workers' pods watches.
kube::Kind worker_pod_kind();

// Null: not a pod, or no WorkerPool owns it.
WorkerPodPtr decode_worker_pod(const JsonView& json);

}  // namespace holdfast::pools
