#include "operator/pools/pool_controller.h"

#include <utility>

#include "operator/pools/worker_windows.h"
#include "reconciler/refusals.h"

namespace holdfast::pools {
namespace {

using kube::namespace_of;

// Writes of workers and pools in flight, for one namespace.
constexpr int kPoolWorkers = 32;

const char* metric_state(const Pool& pool, const Worker& worker) {
  switch (worker.state()) {
    case reconciler::WorkerState::kStarting:
      return "starting";
    case reconciler::WorkerState::kDraining:
      return "draining";
    case reconciler::WorkerState::kCutOff:
      return "cut_off";
    case reconciler::WorkerState::kLive:
      break;
  }
  const bool is_busy = worker.lease && pool.book.workers().of(worker.lease->uid).attempts() > 0;
  return is_busy ? "busy" : "idle";
}

}  // namespace

PoolController::PoolController(Dependencies given, Config config)
    : deps_{given.loop,   given.client, given.log, given.telemetry, given.events, given.membership,
            given.caches, reaches_,     known_,    looks_,          times_},
      times_(config.namespaces),
      work_({given.loop, given.log}, {.workers = kPoolWorkers, .queue = {}},
            [this](std::string key) { return reconcile(std::move(key)); }),
      looks_({given.loop, given.membership, given.caches.pools, known_, work_.queue(),
              std::move(given.look_at)}),
      reaches_{{given.loop, given.client, *given.caches.jobs, given.log,
                [this](const std::string& key) { looks_.add(key); }},
               {given.loop, given.client, *given.caches.pods, given.log,
                [this](const std::string& key) { looks_.add(key); }},
               {given.loop, given.client, *given.caches.leases, given.log,
                [this](const std::string& key) {
                  looks_.look_at_job(key, controller::Priority::kFresh);
                }}},
      without_pool_(given.loop, deps_.caches, looks_),
      tracker_(deps_),
      missing_(deps_, tracker_),
      places_(deps_, without_pool_, missing_),
      pool_reconciler_(deps_, tracker_, missing_, std::move(config.agent_image)),
      worker_reconciler_(deps_, tracker_) {
  given.caches.jobs.on_change([this](const auto& change) { on_job(change); });
  given.caches.pools.on_change([this](const auto& change) { on_pool(change); });
  given.caches.pods.on_change([this](const auto& change) { on_pod(change); });
  given.caches.leases.on_change([this](const auto& change) { on_lease(change); });
  WorkerWindows{deps_}.keep(given.windows);
}

void PoolController::begin() {
  without_pool_.begin();
  work_.start();
}

void PoolController::stop(std::function<void()> idle) {
  reaches_.stop();
  work_.stop(std::move(idle));
}

void PoolController::look_at_all(int shard) {
  const auto is_of_shard = [&](const std::string& key) {
    return deps_.membership.shard_of(namespace_of(key)) == shard;
  };
  for (const auto& [key, pool] : known_.pools()) {
    if (is_of_shard(key)) looks_.add(key);
  }
  for (const auto& [key, worker] : known_.workers()) {
    if (is_of_shard(key)) looks_.add(worker->queue_key());
  }
  deps_.caches.pools.for_each([&](const PoolPtr& pool) {
    if (is_of_shard(pool->key())) looks_.add(pool->key());
  });
}

void PoolController::watch_leases() {
  times_.watch([this](const std::string& watched) { return deps_.caches.leases->live(watched); },
               deps_.loop.now());
}

void PoolController::proof() {
  watch_leases();
  times_.proof(deps_.loop.now());
  missing_.watch();
}

void PoolController::on_progress() {
  watch_leases();
  reaches_.on_progress();
  without_pool_.on_progress();
}

// What the answers to our own writes have brought may never have been.
void PoolController::time_travelled() {
  reaches_.time_travelled();
  tracker_.time_travelled();
  for (const auto& [key, pool] : known_.pools()) {
    pool->written.version = 0;
    looks_.add(key);
  }
}

// ---- What the caches show.

void PoolController::on_job(const cache::View<codecs::CachedJob>::Change& change) {
  const codecs::JobPtr& before = change.before;
  const codecs::JobPtr& after = change.after;
  const std::string key_before = before ? pool_key_of(*before) : "";
  const std::string key = after ? pool_key_of(*after) : "";
  const bool is_same = before && after && before->uid == after->uid && key_before == key;
  if (!key_before.empty() && !is_same) {
    if (const KnownPool pool = known_.find(key_before)) {
      looks_.look_at_workers(key_before, pool->book.erase(before->uid));
      looks_.wake(key_before, *pool);
      if (!deps_.caches.pools.get(key_before)) known_.forget_if_empty(key_before);
    }
    without_pool_.erase(*before, key_before);
  }
  if (key.empty()) return;
  const KnownPool pool = known_.pool(key);
  looks_.look_at_workers(key, pool->book.put(*after, deps_.loop.now()));
  looks_.wake(key, *pool);
}

void PoolController::on_pool(const cache::View<CachedPool>::Change& change) {
  const std::string key = change.latest().key();
  looks_.add(key);
  if (const KnownPool pool = known_.find(key)) {
    for (const auto& [uid, worker] : pool->workers) {
      tracker_.refresh(*worker);
      looks_.look_at(*worker);
    }
    // Jobs that wait say whether there is a pool.
    if (!change.after) {
      for (const std::string& name : pool->book.lines().names()) {
        looks_.look_at_job(namespace_of(key) + "/" + name, controller::Priority::kLow);
      }
    }
  }
  without_pool_.look_at(key);
}

void PoolController::on_pod(const cache::View<CachedWorkerPod>::Change& change) {
  if (change.after) {
    tracker_.show_pod(change.after, /*is_own=*/false);
    return;
  }
  const WorkerPtr worker = known_.find_worker(change.before->namespace_, change.before->uid);
  if (worker) tracker_.pod_is_gone(worker);
}

void PoolController::on_lease(const cache::View<CachedWorkerLease>::Change& change) {
  if (change.after) {
    tracker_.show_lease(change.after, /*is_own=*/false);
    return;
  }
  const CachedWorkerLease& lease = *change.before;
  const WorkerPtr worker = known_.find_worker(lease.namespace_, lease.pod_uid);
  if (!worker) return;
  const auto& known = lease.is_work ? worker->work : worker->lease;
  if (known && known->uid == lease.uid) tracker_.lease_is_gone(worker, lease.is_work);
}

Task<controller::ReconcileResult> PoolController::reconcile(std::string key) {
  const std::size_t mark = key.find('#');
  const bool is_worker = mark != std::string::npos;
  const WorkerPtr worker =
      is_worker ? known_.find_worker(namespace_of(key), key.substr(mark + 1)) : nullptr;
  if (is_worker && !worker) co_return controller::ReconcileResult{};
  auto task = worker ? worker_reconciler_.reconcile(worker) : pool_reconciler_.reconcile(key);
  controller::ReconcileResult result = co_await task;
  if (result.error && reconciler::person_must_help(result.error->code)) {
    deps_.log.warn("a write for a pool was refused; it is tried again",
                   {{"pool", key.substr(0, mark)}, {"error", result.error->message}});
  }
  co_return result;
}

// ---- Metrics.

std::vector<PoolCount> PoolController::counts() const {
  std::vector<PoolCount> all;
  for (const auto& [key, pool] : known_.pools()) {
    if (!deps_.membership.holds(namespace_of(key)) || !deps_.caches.pools.get(key)) continue;
    PoolCount count;
    count.namespace_ = namespace_of(key);
    count.name = key.substr(count.namespace_.size() + 1);
    count.slots = pool->book.workers().slots();
    count.busy_slots = pool->book.workers().busy();
    count.waiting = pool->book.lines().wanted();
    count.lag = pool->book.lag(deps_.loop.now());
    for (const auto& [uid, worker] : pool->workers) ++count.workers[metric_state(*pool, *worker)];
    all.push_back(std::move(count));
  }
  return all;
}

}  // namespace holdfast::pools
