#include "operator/pools/pool_controller.h"

#include <algorithm>

#include "operator/jobs/job_controller.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

// Writes of workers and pools in flight, for one namespace.
constexpr int kPoolWorkers = 32;
// The first list of a kind may fail some times.
constexpr std::chrono::seconds kReadingTime{60};

// A read of a Lease is as good as now for so long.
constexpr std::chrono::seconds kLooked{1};
// A verdict that waits for such a read.
constexpr std::chrono::milliseconds kLookAgain{500};

std::string pool_key(const CachedJob& job) {
  return job.namespace_ + "/" + job.job.spec.pool->name;
}

// Empty: it has none in its current stage.
std::string pool_key_of(const CachedJob& job) { return job.job.spec.pool ? pool_key(job) : ""; }

ReconcilePool::Config pool_config() {
  ReconcilePool::Config config;
  config.workers = kPoolWorkers;
  return config;
}

}  // namespace

PoolController::PoolController(Dependencies dependencies, Config config)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      telemetry_(dependencies.telemetry),
      events_(dependencies.events),
      jobs_(dependencies.jobs),
      pools_(dependencies.pools),
      pods_(dependencies.pods),
      leases_(dependencies.leases),
      membership_(dependencies.membership),
      look_at_(std::move(dependencies.look_at)),
      config_(std::move(config)),
      times_(config_.namespaces),
      jobs_reach_(loop_, client_, *jobs_, log_,
                  [this](const std::string& key) { work_.queue().add(key); }),
      pods_reach_(loop_, client_, *pods_, log_,
                  [this](const std::string& key) { work_.queue().add(key); }),
      leases_reach_(loop_, client_, *leases_, log_,
                    [this](const std::string& key) { look_at_(key, Priority::kFresh); }),
      work_({loop_, log_}, pool_config(),
            [this](std::string key) { return reconcile(std::move(key)); }) {
  jobs_.on_change([this](const auto& change) { on_job(change); });
  pools_.on_change([this](const auto& change) { on_pool(change); });
  pods_.on_change([this](const auto& change) { on_pod(change); });
  leases_.on_change([this](const auto& change) { on_lease(change); });
  keep_windows(dependencies.windows);
}

void PoolController::begin() {
  began_ = loop_.now();
  work_.start();
}

void PoolController::stop(std::function<void()> idle) {
  jobs_reach_.stop();
  pods_reach_.stop();
  leases_reach_.stop();
  work_.stop(std::move(idle));
}

void PoolController::look_at_all(int shard) {
  const auto is_of_shard = [&](const std::string& key) {
    return membership_.shard_of(namespace_of(key)) == shard;
  };
  for (const auto& [key, pool] : books_) {
    if (is_of_shard(key)) work_.queue().add(key);
  }
  for (const auto& [key, worker] : workers_) {
    if (is_of_shard(key)) work_.queue().add(worker->queue_key());
  }
  pools_.for_each([&](const PoolPtr& pool) {
    if (is_of_shard(pool->key())) work_.queue().add(pool->key());
  });
}

void PoolController::proof() {
  times_.watch([this](const std::string& watched) { return leases_->live(watched); }, loop_.now());
  times_.proof(loop_.now());
  watch_missing();
}

void PoolController::on_progress() {
  times_.watch([this](const std::string& watched) { return leases_->live(watched); }, loop_.now());
  jobs_reach_.on_progress();
  pods_reach_.on_progress();
  leases_reach_.on_progress();
  look_at_unread();
}

// What the answers to our own writes have brought may never have been.
void PoolController::time_travelled() {
  jobs_reach_.time_travelled();
  pods_reach_.time_travelled();
  leases_reach_.time_travelled();
  const auto all = workers_;
  for (const auto& [key, worker] : all) {
    worker->own_pod = worker->own_lease = worker->own_work = 0;
  }
  for (const auto& [key, known] : all) {
    const auto& worker = known;  // a lambda captures it
    const auto again = [&](const std::string& name) {
      return leases_.get(worker->namespace_ + "/" + name);
    };
    if (!again(worker_lease_name(worker->pod_uid))) lease_is_gone(worker, /*is_work=*/false);
    if (!again(work_lease_name(worker->pod_uid))) lease_is_gone(worker, /*is_work=*/true);
    work_.queue().add(worker->queue_key());
  }
  for (auto& [key, pool] : books_) {
    pool->written_version = 0;
    work_.queue().add(key);
  }
}

// ---- What the controller of jobs asks.

// As for queues: pools that cannot be read for long are as good as missing.
bool PoolController::has_read_pools(const std::string& ns) const {
  return pools_->version(ns) > 0 || loop_.now() - began_ >= kReadingTime;
}

reconciler::PoolView PoolController::of(const CachedJob& job) {
  const std::string key = pool_key(job);
  const auto spec = cached(key);
  if (!spec) {
    reconciler::PoolView view;
    view.no_pool = has_read_pools(job.namespace_);
    if (const auto pool = find_pool(key))
      view.wait = pool->book.lines().wait_of(job.uid, loop_.now());
    // Only of jobs in the cache: its change ends the entry.
    const JobPtr newest = jobs_.get(job.key());
    if (!newest || newest->uid != job.uid || pool_key_of(*newest) != key) return view;
    Lacking& lacking = lacking_[key];
    lacking.was_read = view.no_pool;
    lacking.jobs.insert(job.key());
    return view;
  }
  reconciler::PoolView view = pool_of(key)->book.offer(job, loop_.now());
  view.unknown = spec->spec.unknown;
  if (!view.unknown.empty()) {
    view.offers.clear();
    view.empty.clear();
  }
  return view;
}

// ---- Jobs without a pool.

void PoolController::lacks_no_more(const std::string& key, const CachedJob* job) {
  const auto lacking = lacking_.find(key);
  if (lacking == lacking_.end()) return;
  lacking->second.jobs.erase(job->key());
  if (lacking->second.jobs.empty()) lacking_.erase(lacking);
}

void PoolController::look_at_lacking(const std::string& key) {
  const auto lacking = lacking_.find(key);
  if (lacking == lacking_.end()) return;
  const std::set<std::string> jobs = std::move(lacking->second.jobs);
  lacking_.erase(lacking);
  for (const std::string& job : jobs) look_at_(job, Priority::kLow);
}

void PoolController::look_at_unread() {
  std::vector<std::string> read;
  for (const auto& [key, lacking] : lacking_) {
    if (!lacking.was_read && has_read_pools(namespace_of(key))) read.push_back(key);
  }
  for (const std::string& key : read) look_at_lacking(key);
}

// ---- Places.

void PoolController::ask(const CachedJob& job, std::int64_t runs, std::int64_t alone) {
  // It decided on this version, and a newer one may have come meanwhile.
  const JobPtr newest = jobs_.get(job.key());
  if (!newest || newest->uid != job.uid || newest->version != job.version) return;
  const std::string key = pool_key(job);
  const std::shared_ptr<Pool> pool = pool_of(key);
  const std::int64_t before = pool->book.lines().wanted();
  pool->book.ask(job, runs, alone, loop_.now());
  if (pool->book.lines().wanted() == before) return;
  wake(key, *pool);  // who comes after it may be at its turn now
  look_at_pool_soon(key);
}

void PoolController::placed(const CachedJob& job, const reconciler::Status& next) {
  const std::string key = pool_key(job);
  const std::shared_ptr<Pool> pool = pool_of(key);
  if (!pool->book.placed(job, next, loop_.now())) return;
  work_.queue().add_after(key, PoolBook::kPromise);
  look_at_pool_soon(key);
}

void PoolController::not_placed(const CachedJob& job) {
  const std::string key = pool_key(job);
  const auto pool = find_pool(key);
  if (!pool) return;
  pool->book.not_placed(job, loop_.now());
  wake(key, *pool);
}

// Also for shards of others: the next owner has then seen it from its start.
void PoolController::watch_missing() {
  for (const auto& [key, pool] : books_) {
    const std::string ns = namespace_of(key);
    if (leases_->version(ns) == 0) continue;
    for (const std::string& uid : pool->book.workers().missing()) {
      times_.missing_for(ns + "/" + uid, loop_.now());
    }
  }
}

// The worker Lease was read a moment ago. If not, it will be, and its jobs are looked at then.
bool PoolController::has_looked(const WorkerPtr& worker) const {
  if (worker->last_read && loop_.now() - *worker->last_read < kLooked) return true;
  worker->wants_read = true;
  work_.queue().add(worker->queue_key());
  return false;
}

reconciler::SlotView PoolController::at(const CachedJob& job, const reconciler::Run& run) const {
  reconciler::SlotView slot;
  const auto found = by_lease_.find(run.worker_uid);
  const AttemptId id{job.uid, run.index, run.attempt};
  if (found == by_lease_.end()) {
    // Its agent's own deadlines come first: nothing runs there after this time.
    const std::string key = job.namespace_ + "/" + run.worker_uid;
    const auto pool = job.job.spec.pool ? find_pool(pool_key(job)) : nullptr;
    const Duration after = pool ? pool->book.workers().of(run.worker_uid).lease_duration()
                                : WorkerSlots::kLongestDuration;
    const bool is_new =
        leases_reach_.has(job.namespace_, leases_reach_.since(job.uid, job.version), job.key());
    if (!is_new || times_.missing_for(key, loop_.now()) < after) return slot;
    if (pool && pool->known_gone.count(run.worker_uid) == 0) return slot;
    slot.at = reconciler::AtPlace::kLost;
    slot.left = true;
    return slot;
  }
  const Worker& worker = *found->second;
  reconciler::WorkerView& view = found->second->view;
  const Answer* answer = nullptr;
  const auto look = [&](bool read_after) {
    view.read_after = read_after;
    slot.at = at_place(id, view, &answer);
    slot.left = has_left(id, view);
    return run.open() ? is_empty(slot.at) : slot.left;
  };
  const cache::Moment needed = leases_reach_.since(job.uid, job.version);
  // What this process wrote itself comes back by the watch.
  const std::uint64_t version = worker.lease->version;
  const bool is_new =
      leases_->version(job.namespace_) >= version && leases_reach_.has(job.namespace_, needed);
  // The job waits for newer Leases only if they can change something.
  if (!look(is_new) && !is_new && look(true)) {
    leases_reach_.has(job.namespace_, needed, job.key(), version);
    look(false);
  }
  if (slot.at == reconciler::AtPlace::kUnknown && !is_new) {
    leases_reach_.has(job.namespace_, needed, job.key(), version);
  }
  if (slot.at == reconciler::AtPlace::kLost) {
    slot.lost_why = view.cut_off_why;
    slot.out_of_memory = view.out_of_memory;
    slot.beside_others = reconciler::attempts_at_end(view) > 1;
  }
  slot.is_known = is_new && leases_->live(job.namespace_) && worker.is_readable() &&
                  worker.lease->is() == reconciler::WorkerIs::kLive;
  if (slot.at == reconciler::AtPlace::kUnknown && slot.is_known && run.start_time &&
      now() - *run.start_time >= job.job.spec.start_deadline) {
    slot.is_known = has_looked(found->second);
  }
  if (!answer) return slot;
  slot.exit_code = answer->exit_code;
  slot.result = answer->result;
  slot.progress = answer->message;
  slot.checkpoint = answer->checkpoint;
  slot.stalled_for = std::chrono::seconds(answer->age_seconds) +
                     times_.silent_for(worker.key(), worker.duration(), loop_.now());
  const auto deadline = job.job.spec.pool ? job.job.spec.pool->progress_deadline : std::nullopt;
  const bool hangs = run.open() && deadline && slot.stalled_for >= *deadline;
  if (hangs && !has_looked(found->second)) slot.stalled_for = *deadline - kLookAgain;
  return slot;
}

// ---- Metrics.

std::vector<PoolCount> PoolController::counts() const {
  using State = reconciler::WorkerState;
  std::vector<PoolCount> all;
  for (const auto& [key, pool] : books_) {
    if (!membership_.holds(namespace_of(key)) || !cached(key)) continue;
    PoolCount count;
    count.namespace_ = namespace_of(key);
    count.name = key.substr(count.namespace_.size() + 1);
    count.slots = pool->book.workers().slots();
    count.busy_slots = pool->book.workers().busy();
    count.waiting = pool->book.lines().wanted();
    count.lag = pool->book.lag(loop_.now());
    for (const auto& [uid, worker] : pool->workers) {
      const State state = worker->state();
      const bool is_busy =
          worker->lease && pool->book.workers().of(worker->lease->uid).attempts() > 0;
      const char* const name = state == State::kStarting   ? "starting"
                               : state == State::kDraining ? "draining"
                               : state == State::kCutOff   ? "cut_off"
                               : is_busy                   ? "busy"
                                                           : "idle";
      ++count.workers[name];
    }
    all.push_back(std::move(count));
  }
  return all;
}

}  // namespace holdfast::controller
