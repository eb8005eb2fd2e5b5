// The two Leases of a warm worker between JSON and the words of the protocol
// (docs/internals/workers.md, core/worker_protocol.h). Pure.
//
//   holdfast-worker-<pod UID>   the agent's
//     spec.holderIdentity         <pod name>/<pod UID>, or "revoked"; absent: cut off
//     spec.renewTime              absent until the agent renews
//   holdfast-work-<pod UID>     the operator's
//     spec.renewTime              when the operator last wrote it: a worker without an entry has
//                                 been idle since then
//
// Both belong to the WorkerPool, not to the pod: they outlive the pod, because the last answers
// count.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "client/kube/object.h"
#include "core/time.h"
#include "core/worker_protocol.h"
#include "operator/pools/worker_pod.h"
#include "reconciler/pool/work.h"

namespace holdfast::pools {

inline constexpr const char* kRevokedHolder = "revoked";
// On a worker Lease that is cut off: "<reason>: <why>", as decide_worker() has it.
inline constexpr const char* kCutOffAnnotation = "holdfast.dev/cut-off";

std::string work_lease_name(const std::string& pod_uid);
std::string worker_lease_name(const std::string& pod_uid);
// The pod's UID in the name of either; empty: it is no such name.
std::string pod_uid_in_lease_name(const std::string& name);

// The holder that the agent of this pod expects.
std::string worker_holder(const std::string& pod_name, const std::string& pod_uid);

struct CachedWorkerLease : kube::Object {
  bool is_work = false;   // which of the two
  std::string pod_uid;    // from its name
  std::string pool_name;  // of the WorkerPool that owns it; owner_uid is its UID
  std::chrono::seconds duration{0};
  // Why it is not a Lease of ours, e.g. a label that somebody has changed. Empty: it is one. Then
  // all below is set.
  std::string refused;
  // The annotation as its writer put it. Why it is not understood: then `report` or `work` is
  // empty.
  std::string words;
  std::string error;

  std::optional<Time> renewed;  // of either

  // The worker Lease.
  std::string holder;
  WorkerReport report;         // empty before the first renewal
  std::string cut_off_why;     // as its cut-off has recorded it, as the end of a sentence
  bool out_of_memory = false;  // ... because the kernel killed it for its memory
  reconciler::WorkerIs is() const;

  // The work Lease.
  Work work;
};
using WorkerLeasePtr = std::shared_ptr<const CachedWorkerLease>;

// What the cache of both watches.
kube::Kind worker_lease_kind();

// Null: no Lease with one of the two names.
WorkerLeasePtr decode_worker_lease(const JsonView& json);

// In all bodies `shard` is the value of reconciler::kShardLabel: of the pool's namespace.

// The body of the POST of the worker Lease. `holder`: worker_holder(), or kRevokedHolder if the
// Lease was deleted and is made again.
std::string new_worker_lease_body(const WorkerPool& pool, const std::string& shard,
                                  const std::string& pod_uid, const std::string& holder);
// The body of the POST of the work Lease.
std::string new_work_lease_body(const WorkerPool& pool, const std::string& shard,
                                const std::string& pod_uid, const Work& work, Time now);

// The bodies of PUTs, with the UID and the resourceVersion of the version that was read. They keep
// the words of the worker, and drop what others have added to the Lease.
std::string revoked_lease_body(const CachedWorkerLease& lease, const std::string& shard);
std::string cut_off_lease_body(const CachedWorkerLease& lease, const std::string& shard,
                               const std::string& reason, const std::string& why);
std::string work_lease_body(const CachedWorkerLease& lease, const std::string& shard,
                            const Work& work, Time now);

}  // namespace holdfast::pools
