// The controller of WorkerPools (docs/workers.md). One replica does so for all pools of a
// namespace, the holder of the namespace's shard.
//
// A reconcile of a pool makes its pods, marks those that shall drain, and writes its status:
// reconciler::plan_pool() decides. A reconcile of one worker makes its two Leases, revokes it or
// cuts it off, and writes its work Lease: reconciler::decide_worker() and next_work() decide. Each
// worker has a key of its own, so a slow write holds up no other worker. Its writes carry all that
// is due.
//
// Nothing that only this process knows decides for ever: a new owner goes on from Leases and jobs.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/cache/reach.h"
#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/events/events.h"
#include "operator/jobs/places.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/pools/pool_workers.h"
#include "operator/pools/worker_times.h"

namespace holdfast::controller {

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

class PoolController : public Controller, public Places {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    Telemetry& telemetry;
    EventSink& events;
    // Of job_kind(), pool_kind(), worker_pod_kind() and worker_lease_kind().
    cache::View<CachedJob> jobs;
    cache::View<CachedPool> pools;
    cache::View<CachedWorkerPod> pods;
    cache::View<CachedWorkerLease> leases;
    WindowKeeper& windows;
    Membership& membership;
    // Look at the job with this key ("namespace/name") again.
    std::function<void(const std::string& key, Priority priority)> look_at;
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

  reconciler::PoolView of(const CachedJob& job) override;
  void ask(const CachedJob& job, std::int64_t runs, std::int64_t alone) override;
  void placed(const CachedJob& job, const reconciler::Status& next) override;
  void not_placed(const CachedJob& job) override;
  reconciler::SlotView at(const CachedJob& job, const reconciler::Run& run) const override;

  // For metrics: the pools in the shards held here.
  std::vector<PoolCount> counts() const;

 private:
  // pool_events.cc: what the caches tell.
  void on_job(const cache::View<CachedJob>::Change& change);
  void on_pool(const cache::View<CachedPool>::Change& change);
  void on_pod(const cache::View<CachedWorkerPod>::Change& change);
  void on_lease(const cache::View<CachedWorkerLease>::Change& change);
  // `is_own`: the answer to a write or read of ours, which may be newer than the watch, or older.
  void show_pod(WorkerPodPtr pod, bool is_own);
  void pod_is_gone(const WorkerPtr& worker);
  void show_lease(WorkerLeasePtr lease, bool is_own);
  void lease_is_gone(const WorkerPtr& worker, bool is_work);
  void leases_changed(const WorkerPtr& worker, const WorkerLeasePtr& before,
                      reconciler::WorkerState state_before);
  void worker_is_another(Worker& worker, const std::string& lease_uid);
  void look_at_places(const Worker& worker, const std::string& lease_uid, const PlaceNews& news);
  void look_at_worker(const Worker& worker);
  void look_at_workers(const std::string& pool_key, const std::vector<std::string>& lease_uids);
  void look_at_pool_soon(const std::string& pool_key);
  void look_at_lacking(const std::string& pool_key);
  void lacks_no_more(const std::string& pool_key, const CachedJob* job);
  void look_at_unread();
  void wake(const std::string& pool_key, Pool& pool);
  WorkerPtr worker_of(const std::string& ns, const std::string& pool, const std::string& pod_uid);
  WorkerPtr find_worker(const std::string& ns, const std::string& pod_uid) const;
  void forget_if_empty(const WorkerPtr& worker);
  std::shared_ptr<Pool> pool_of(const std::string& key);
  std::shared_ptr<Pool> find_pool(const std::string& key) const;
  PoolPtr cached(const std::string& key) const;
  bool has_read_pools(const std::string& ns) const;
  // Its slots and what it may take, into the book.
  reconciler::WorkerDecision refresh(Worker& worker);
  reconciler::WorkerFacts facts(const Worker& worker);
  reconciler::PodIs pod_is(const Worker& worker);
  bool is_needed(const Worker& worker);
  bool has_looked(const WorkerPtr& worker) const;
  void watch_missing();

  // pool_wanted.cc: which silences are recorded, and for which shards.
  void keep_windows(WindowKeeper& windows);
  WindowKeeper::Wanted silence_wanted(const std::string& key, Duration silent) const;
  WindowKeeper::Wanted revoked_wanted(const std::string& key) const;
  WindowKeeper::Wanted echo_wanted(const std::string& key) const;
  WindowKeeper::Wanted missing_wanted(const std::string& key) const;

  // pool_worker_look.cc: one reconcile of a worker.
  Task<ReconcileResult> reconcile(std::string key);
  Task<ReconcileResult> reconcile_worker(WorkerPtr worker);
  void tell_refused(const Worker& worker, const Error& error);
  Task<Status> take_step(WorkerPtr worker, reconciler::WorkerDecision decision,
                         Ownership::Claim claim);
  Task<Status> make_lease(WorkerPtr worker, bool is_work, std::string body, Ownership::Claim claim);
  Task<Status> put_lease(WorkerPtr worker, WorkerLeasePtr lease, std::string body,
                         Ownership::Claim claim);
  Task<Status> read_lease(WorkerPtr worker, bool is_work);
  Task<Status> look_live(WorkerPtr worker);
  Task<Status> forget_leases(WorkerPtr worker, Ownership::Claim claim);
  Task<Status> write_work(WorkerPtr worker, Work next, Ownership::Claim claim);
  std::optional<Work> next_work_of(const Worker& worker, bool& looks_again);
  reconciler::RecordSays record(const Worker& worker, const AttemptId& id,
                                const std::string& job_name);
  void tell_end(const Worker& worker, const reconciler::WorkerDecision& decision);
  void tell_hand_backs(const Worker& worker, const reconciler::WorkerView& before);

  // pool_look.cc: one reconcile of a pool.
  Task<ReconcileResult> reconcile_pool(std::string key);
  reconciler::PoolState state_of(const CachedPool& cached, Pool& pool);
  std::vector<std::string> free_names(const CachedPool& cached, const Pool& pool,
                                      std::int64_t count);
  Task<Status> create_pods(PoolPtr cached, std::shared_ptr<Pool> pool,
                           std::vector<std::string> names, Ownership::Claim claim);
  struct Removed {
    std::size_t gone = 0;
    std::size_t failed = 0;
  };
  Task<Removed> remove_pods(std::shared_ptr<Pool> pool, std::vector<std::string> uids,
                            Ownership::Claim claim, ReconcileResult& result);
  Task<Status> remove_pod(WorkerPtr worker, Ownership::Claim claim);
  Task<Result<std::string>> template_of(PoolPtr cached);
  Task<Status> write_status(PoolPtr cached, std::shared_ptr<Pool> pool,
                            reconciler::PoolStatus status, Ownership::Claim claim);
  void tell_failed_start(const CachedPool& pool, const reconciler::PoolStatus& status);
  bool knows_pods(const CachedPool& cached, Pool& pool, const std::string& holder);
  Task<Status> read_missing(std::string key, std::shared_ptr<Pool> pool);
  std::optional<Duration> look_for_missing(const std::string& key, Pool& pool);
  void forget_unseen_pods(Pool& pool);
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  Telemetry& telemetry_;
  EventSink& events_;
  cache::View<CachedJob> jobs_;
  cache::View<CachedPool> pools_;
  cache::View<CachedWorkerPod> pods_;
  cache::View<CachedWorkerLease> leases_;
  Membership& membership_;
  std::function<void(const std::string& key, Priority priority)> look_at_;
  const Config config_;
  // The clocks and the caches' versions, which a look at a job may only ask.
  mutable WorkerTimes times_;
  mutable cache::Reach jobs_reach_;
  mutable cache::Reach pods_reach_;
  mutable cache::Reach leases_reach_;
  mutable ReconcilePool work_;
  std::unordered_map<std::string, std::shared_ptr<Pool>> books_;  // by the pool's key
  std::unordered_map<std::string, WorkerPtr> workers_;            // by namespace and pod UID
  std::unordered_map<std::string, WorkerPtr> by_lease_;           // by the worker Lease's UID
  // Jobs whose pool is not in the cache, by the pool's key.
  struct Lacking {
    bool was_read = false;  // it was known by then that there is none
    std::set<std::string> jobs;
  };
  std::unordered_map<std::string, Lacking> lacking_;
  SteadyTime began_{};
};

}  // namespace holdfast::controller
