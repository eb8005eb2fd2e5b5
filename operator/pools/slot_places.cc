#include "operator/pools/slot_places.h"

#include "reconciler/pool/work.h"

namespace holdfast::pools {
namespace {

// A read of a Lease is as good as now for so long.
constexpr std::chrono::seconds kLooked{1};
// A verdict that waits for such a read.
constexpr std::chrono::milliseconds kLookAgain{500};

}  // namespace

// ---- Free slots.

reconciler::PoolView SlotPlaces::of(const codecs::CachedJob& job) {
  const std::string key = pool_key_of(job);
  const auto spec = deps_.caches.pools.get(key);
  if (!spec) {
    reconciler::PoolView view;
    view.no_pool = without_pool_.has_read(job.namespace_);
    const auto pool = deps_.known.find(key);
    if (pool) view.wait = pool->book.lines().wait_of(job.uid, deps_.loop.now());
    without_pool_.add(job, key, view.no_pool);
    return view;
  }
  reconciler::PoolView view = deps_.known.pool(key)->book.offer(job, deps_.loop.now());
  view.unknown = spec->spec.unknown;
  if (!view.unknown.empty()) {
    view.offers.clear();
    view.empty.clear();
  }
  return view;
}

void SlotPlaces::ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t alone) {
  // It decided on this version, and a newer one may have come meanwhile.
  const auto newest = deps_.caches.jobs.get(job.key());
  if (!newest || newest->uid != job.uid || newest->version != job.version) return;
  const std::string key = pool_key_of(job);
  const KnownPool pool = deps_.known.pool(key);
  const std::int64_t before = pool->book.lines().wanted();
  pool->book.ask(job, runs, alone, deps_.loop.now());
  if (pool->book.lines().wanted() == before) return;
  deps_.looks.wake(key, *pool);  // who comes after it may be at its turn now
  deps_.looks.look_at_pool_soon(key);
}

void SlotPlaces::placed(const codecs::CachedJob& job, const reconciler::Status& next) {
  const std::string key = pool_key_of(job);
  const KnownPool pool = deps_.known.pool(key);
  if (!pool->book.placed(job, next, deps_.loop.now())) return;
  deps_.looks.add_after(key, PoolBook::kPromise);
  deps_.looks.look_at_pool_soon(key);
}

void SlotPlaces::not_placed(const codecs::CachedJob& job) {
  const std::string key = pool_key_of(job);
  const auto pool = deps_.known.find(key);
  if (!pool) return;
  pool->book.not_placed(job, deps_.loop.now());
  deps_.looks.wake(key, *pool);
}

// ---- Taken slots.

// The worker Lease was read a moment ago. If not, it will be, and its jobs are looked at then.
bool SlotPlaces::has_looked(Worker& worker) const {
  const auto& last = worker.live_read.last;
  if (last && deps_.loop.now() - *last < kLooked) return true;
  worker.live_read.wanted = true;
  deps_.looks.add(worker.queue_key());
  return false;
}

reconciler::SlotView SlotPlaces::at_missing(const codecs::CachedJob& job,
                                            const reconciler::Run& run) const {
  reconciler::SlotView slot;
  const KnownPool pool = job.job.spec.pool ? deps_.known.find(pool_key_of(job)) : nullptr;
  cache::Reach& leases = deps_.reaches.leases;
  const bool is_new = leases.has(job.namespace_, leases.since(job.uid, job.version), job.key());
  if (!is_new || !missing_.is_over(pool.get(), job.namespace_, run.worker_uid)) return slot;
  slot.at = reconciler::AtPlace::kLost;
  slot.left = true;
  return slot;
}

reconciler::SlotView SlotPlaces::in_leases(const codecs::CachedJob& job, const reconciler::Run& run,
                                           Worker& worker, const Answer*& answer) const {
  const AttemptId id{job.uid, run.index, run.attempt};
  reconciler::SlotView slot;
  reconciler::WorkerView& view = worker.view;
  const auto look = [&](bool read_after) {
    view.read_after = read_after;
    slot.at = at_place(id, view, &answer);
    slot.left = has_left(id, view);
    return run.open() ? is_empty(slot.at) : slot.left;
  };
  cache::Reach& leases = deps_.reaches.leases;
  const cache::Moment needed = leases.since(job.uid, job.version);
  // What this process wrote itself comes back by the watch.
  const std::uint64_t version = worker.lease->version;
  const bool is_new =
      deps_.caches.leases->version(job.namespace_) >= version && leases.has(job.namespace_, needed);
  // The job waits for newer Leases only if they can change something.
  if (!look(is_new) && !is_new && look(true)) {
    leases.has(job.namespace_, needed, job.key(), version);
    look(false);
  }
  if (slot.at == reconciler::AtPlace::kUnknown && !is_new) {
    leases.has(job.namespace_, needed, job.key(), version);
  }
  if (slot.at == reconciler::AtPlace::kLost) {
    slot.lost_why = view.cut_off_why;
    slot.out_of_memory = view.out_of_memory;
    slot.beside_others = reconciler::attempts_at_end(view) > 1;
  }
  slot.is_known = is_new && deps_.caches.leases->live(job.namespace_) && worker.is_readable() &&
                  worker.lease->is() == reconciler::WorkerIs::kLive;
  return slot;
}

reconciler::SlotView SlotPlaces::at(const codecs::CachedJob& job,
                                    const reconciler::Run& run) const {
  const WorkerPtr worker = deps_.known.with_lease(run.worker_uid);
  if (!worker) return at_missing(job, run);
  const Answer* answer = nullptr;
  reconciler::SlotView slot = in_leases(job, run, *worker, answer);
  const SteadyTime now = deps_.loop.now();
  if (slot.at == reconciler::AtPlace::kUnknown && slot.is_known && run.start_time &&
      deps_.now() - *run.start_time >= job.job.spec.start_deadline) {
    slot.is_known = has_looked(*worker);
  }
  if (!answer) return slot;
  slot.exit_code = answer->exit_code;
  slot.result = answer->result;
  slot.progress = answer->message;
  slot.checkpoint = answer->checkpoint;
  slot.stalled_for = std::chrono::seconds(answer->age_seconds) +
                     deps_.times.silent_for(worker->key(), worker->duration(), now);
  const auto deadline = job.job.spec.pool ? job.job.spec.pool->progress_deadline : std::nullopt;
  const bool hangs = run.open() && deadline && slot.stalled_for >= *deadline;
  if (hangs && !has_looked(*worker)) slot.stalled_for = *deadline - kLookAgain;
  return slot;
}

}  // namespace holdfast::pools
