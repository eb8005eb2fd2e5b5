// Reconciles one worker: makes its two Leases, revokes it or cuts it off, and writes its work
// Lease. reconciler::decide_worker() and next_work() decide. Loop only.
#pragma once

#include <optional>
#include <string>

#include "client/controller/reconcile_pool.h"
#include "operator/pools/pool_dependencies.h"
#include "operator/pools/worker_tracker.h"

namespace holdfast::pools {

class WorkerReconciler {
 public:
  WorkerReconciler(const PoolDependencies& dependencies, WorkerTracker& tracker)
      : deps_(dependencies), tracker_(tracker) {}

  Task<controller::ReconcileResult> reconcile(WorkerPtr worker);

 private:
  Task<Result<>> take_step(WorkerPtr worker, reconciler::WorkerDecision decision,
                           membership::Ownership::Claim claim);
  Task<Result<>> revoke_or_cut_off(WorkerPtr worker, reconciler::WorkerDecision decision,
                                   membership::Ownership::Claim claim);
  Task<Result<>> make_lease(WorkerPtr worker, bool is_work, std::string body,
                            membership::Ownership::Claim claim);
  Task<Result<>> put_lease(WorkerPtr worker, WorkerLeasePtr lease, std::string body,
                           membership::Ownership::Claim claim);
  Task<Result<>> read_lease(WorkerPtr worker, bool is_work);
  Task<Result<>> look_live(WorkerPtr worker);
  Task<Result<>> forget_leases(WorkerPtr worker, membership::Ownership::Claim claim);
  Task<Result<>> write_work(WorkerPtr worker, Work next, membership::Ownership::Claim claim);
  std::optional<Work> next_work_of(const Worker& worker, bool& looks_again);
  reconciler::RecordSays record(const Worker& worker, const AttemptId& id,
                                const std::string& job_name);
  void report_end(const Worker& worker, const reconciler::WorkerDecision& decision);
  void record_refusal(const Worker& worker, const Error& error);
  std::string label(const membership::Ownership::Claim& claim) const {
    return deps_.membership.shard_label(claim.shard);
  }

  const PoolDependencies& deps_;
  WorkerTracker& tracker_;
};

}  // namespace holdfast::pools
