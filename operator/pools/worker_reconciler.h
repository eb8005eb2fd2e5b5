// Reconciles one worker: makes its two Leases, revokes it or cuts it off, and writes its work
// Lease. reconciler::decide_worker() and next_work() decide. Loop only.
#pragma once

#include <optional>
#include <string>

#include "client/controller/reconcile_pool.h"
#include "client/kube/client.h"
#include "operator/events/events.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/pools/known_pools.h"
#include "operator/pools/pool_caches.h"
#include "operator/pools/pool_looks.h"
#include "operator/pools/worker_tracker.h"

namespace holdfast::pools {

class WorkerReconciler {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    jobs::Telemetry& telemetry;
    events::EventSink& events;
    membership::Membership& membership;
    const PoolCaches& caches;
    PoolReaches& reaches;
    KnownPools& known;
    PoolLooks& looks;
    WorkerTracker& tracker;
  };
  explicit WorkerReconciler(const Dependencies& dependencies) : deps_(dependencies) {}

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
  Time now() const { return deps_.client.server_clock().now(deps_.loop.now()); }

  Dependencies deps_;
};

}  // namespace holdfast::pools
