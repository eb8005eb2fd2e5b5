// Reconciles one pool: makes its pods, marks the workers that shall drain, deletes pods, and writes
// its status. reconciler::plan_pool() decides. Loop only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/controller/reconcile_pool.h"
#include "operator/pools/missing_workers.h"
#include "operator/pools/pool_dependencies.h"
#include "operator/pools/worker_tracker.h"

namespace holdfast::pools {

class PoolReconciler {
 public:
  // Without `agent_image` no worker can start.
  PoolReconciler(const PoolDependencies& dependencies, WorkerTracker& tracker,
                 MissingWorkers& missing, std::string agent_image)
      : deps_(dependencies),
        tracker_(tracker),
        missing_(missing),
        agent_image_(std::move(agent_image)) {}

  Task<controller::ReconcileResult> reconcile(std::string key);

 private:
  // How many pods.
  struct Removed {
    std::size_t gone = 0;
    std::size_t failed = 0;
  };

  Task<void> look_for_missing(std::string key, KnownPool pool, controller::ReconcileResult& result);
  Task<void> carry_out_plan(PoolPtr cached, KnownPool pool, membership::Ownership::Claim claim,
                            controller::ReconcileResult& result);
  reconciler::PoolState state_of(const CachedPool& cached, Pool& pool);
  void set_drains(Pool& pool, const std::vector<std::string>& pod_uids);
  bool knows_pods(const CachedPool& cached, Pool& pool, const std::string& holder);

  Task<Result<std::string>> template_of(PoolPtr cached);
  std::vector<std::string> free_names(const CachedPool& cached, const Pool& pool,
                                      std::int64_t count);
  Task<Result<>> create_pods(PoolPtr cached, KnownPool pool, std::vector<std::string> names,
                             std::vector<std::string> avoid, membership::Ownership::Claim claim);
  Task<Result<>> create_pod(const WorkerPool& owner, const std::string& pod_template,
                            const std::string& name, Pool& pool,
                            const membership::Ownership::Claim& claim);
  Task<Result<>> read_pod(const std::string& ns, const std::string& name, Pool& pool);
  Task<Removed> remove_pods(KnownPool pool, std::vector<std::string> uids,
                            membership::Ownership::Claim claim,
                            controller::ReconcileResult& result);
  Task<Result<>> remove_pod(WorkerPtr worker, membership::Ownership::Claim claim);

  Task<void> keep_status(PoolPtr cached, KnownPool pool, reconciler::PoolStatus status,
                         bool is_urgent, membership::Ownership::Claim claim,
                         controller::ReconcileResult& result);
  Task<Result<>> write_status(PoolPtr cached, KnownPool pool, reconciler::PoolStatus status,
                              membership::Ownership::Claim claim);
  void report_failed_start(const CachedPool& pool, const reconciler::PoolStatus& status);

  const PoolDependencies& deps_;
  WorkerTracker& tracker_;
  MissingWorkers& missing_;
  const std::string agent_image_;
};

}  // namespace holdfast::pools
