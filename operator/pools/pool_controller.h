// The controller of WorkerPools (docs/internals/workers.md). One replica does so for all pools of a
// namespace, the holder of the namespace's shard.
//
// - The caches' changes come in here. WorkerTracker keeps what is known of workers. PoolBook keeps
//   who holds the slots of a pool. PoolLooks decides who is looked at again.
// - PoolReconciler and WorkerReconciler act. Each worker has a key of its own, so a slow write
//   holds up no other worker. Its writes carry all that is due.
// - SlotPlaces answers the controller of jobs.
//
// Nothing that only this process knows decides for ever: a new owner goes on from Leases and jobs.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/pools/jobs_without_pool.h"
#include "operator/pools/missing_workers.h"
#include "operator/pools/pool_dependencies.h"
#include "operator/pools/pool_reconciler.h"
#include "operator/pools/slot_places.h"
#include "operator/pools/worker_reconciler.h"
#include "operator/pools/worker_tracker.h"

namespace holdfast::pools {

// A pool as metrics show it.
struct PoolCount {
  std::string namespace_;
  std::string name;
  std::map<std::string, std::int64_t> workers;  // by state
  std::int64_t slots = 0;
  std::int64_t busy_slots = 0;
  std::int64_t waiting = 0;  // runs
  Duration lag{0};           // for how long jobs have waited while a slot was free
};
inline constexpr const char* kWorkerStates[] = {"starting", "idle", "busy", "draining", "cut_off"};

class PoolController : public controller::Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    jobs::Telemetry& telemetry;
    events::EventSink& events;
    PoolCaches caches;
    observe::WindowKeeper& windows;
    membership::Membership& membership;
    // Look at the job with this key ("namespace/name") again.
    std::function<void(const std::string& key, controller::Priority priority)> look_at;
  };
  struct Config {
    std::vector<std::string> namespaces;  // empty: all
    std::string agent_image;              // empty: no worker can start
  };
  PoolController(Dependencies dependencies, Config config);

  void begin() override;
  void stop(std::function<void()> idle) override;

  // The shard was gained, or kept.
  void look_at_all(int shard) override;
  // A cache has advanced.
  void on_progress() override;
  // A write of ours, or a consistent read, succeeded.
  void proof();
  void time_travelled() override;

  jobs::Places& places() { return places_; }

  // For metrics: the pools in the shards held here.
  std::vector<PoolCount> counts() const;

 private:
  void on_job(const cache::View<codecs::CachedJob>::Change& change);
  void on_pool(const cache::View<CachedPool>::Change& change);
  void on_pod(const cache::View<CachedWorkerPod>::Change& change);
  void on_lease(const cache::View<CachedWorkerLease>::Change& change);
  void watch_leases();
  Task<controller::ReconcileResult> reconcile(std::string key);

  const PoolDependencies deps_;
  KnownPools known_;
  WorkerTimes times_;
  controller::ReconcilePool work_;
  PoolLooks looks_;
  PoolReaches reaches_;
  JobsWithoutPool without_pool_;
  WorkerTracker tracker_;
  MissingWorkers missing_;
  SlotPlaces places_;
  PoolReconciler pool_reconciler_;
  WorkerReconciler worker_reconciler_;
};

}  // namespace holdfast::pools
