#include "operator/pools/worker_tracker.h"

#include <utility>
#include <vector>

#include "operator/pools/worker_facts.h"

namespace holdfast::pools {
namespace {

// A Lease stays this long after the cut-off: an intent may be under way that names the worker.
constexpr std::chrono::seconds kLeaseStays{10};

// The agent has renewed its Lease, and says nothing else.
bool is_bare_renewal(const CachedWorkerLease& before, const CachedWorkerLease& after) {
  return before.uid == after.uid && before.words == after.words && before.holder == after.holder &&
         before.renewed.has_value() == after.renewed.has_value() &&
         before.refused == after.refused && before.error == after.error &&
         before.duration == after.duration;
}

}  // namespace

// ---- Pods.

void WorkerTracker::show_pod(WorkerPodPtr pod, bool is_own) {
  const WorkerPtr worker = deps_.known.worker(pod->namespace_, pod->pool_name, pod->uid);
  if (!worker) return;
  const WorkerPodPtr before = worker->pod.get();
  if (!worker->pod.show(std::move(pod), is_own)) return;
  worker->pod_history.see(*worker->pod.get(), before.get(), deps_.now());
  worker->pod_name = worker->pod->name;
  refresh(*worker);
  deps_.looks.look_at(*worker);
  deps_.looks.look_at_pool_soon(worker->pool_key());
}

void WorkerTracker::pod_is_gone(const WorkerPtr& worker) {
  worker->pod.reset();
  refresh(*worker);
  deps_.looks.look_at(*worker);
  deps_.looks.look_at_pool_soon(worker->pool_key());
  deps_.known.forget_if_gone(*worker);
}

void WorkerTracker::forget_unseen_pods(const Pool& pool) {
  const PoolCaches& caches = deps_.caches;
  std::vector<WorkerPtr> gone;
  for (const auto& [uid, worker] : pool.workers) {
    if (!worker->pod || caches.pods->version(worker->namespace_) < worker->pod->version) continue;
    const WorkerPodPtr cached = caches.pods.get(worker->pod->key());
    if (!cached || cached->uid != uid) gone.push_back(worker);
  }
  for (const WorkerPtr& worker : gone) pod_is_gone(worker);
}

// ---- Leases.

void WorkerTracker::show_lease(WorkerLeasePtr lease, bool is_own) {
  const WorkerPtr worker = deps_.known.worker(lease->namespace_, lease->pool_name, lease->pod_uid);
  if (!worker) return;
  const bool is_work = lease->is_work;
  Newest<CachedWorkerLease>& known = is_work ? worker->work : worker->lease;
  const WorkerLeasePtr known_before = known.get();
  const WorkerLeasePtr before = worker->lease.get();
  const reconciler::WorkerState state = worker->state();
  if (!known.show(std::move(lease), is_own)) return;
  if (known->refused.empty()) worker->pool_uid = known->owner_uid;
  if (!is_work && known_before && is_bare_renewal(*known_before, *known.get())) {
    deps_.times.seen(worker->key(), *known.get(), worker->work.get().get(), known_before.get(),
                     deps_.loop.now());
    if (!worker->duty.takes) refresh(*worker);
    return;
  }
  leases_changed(worker, before, state);
}

void WorkerTracker::lease_is_gone(const WorkerPtr& worker, bool is_work) {
  const reconciler::WorkerState state = worker->state();
  const WorkerLeasePtr before = worker->lease.get();
  (is_work ? worker->work : worker->lease).reset();
  leases_changed(worker, before, state);
  deps_.known.forget_if_gone(*worker);
}

// The worker with this Lease is gone: another Lease is another worker's.
void WorkerTracker::lost_lease(Worker& worker, const std::string& lease_uid) {
  deps_.known.lost_lease(lease_uid);
  deps_.times.gone(worker.key());
  worker.moments.cut_off_seen.reset();
  if (const auto pool = deps_.known.find(worker.pool_key())) pool->book.erase_worker(lease_uid);
  deps_.looks.look_at_places(worker, lease_uid, {.of_open = true, .of_closed = true, .ids = {}});
  // It looks after the places of workers without a Lease.
  deps_.looks.look_at_pool(worker.pool_key());
}

void WorkerTracker::leases_changed(const WorkerPtr& worker, const WorkerLeasePtr& before,
                                   reconciler::WorkerState state_before) {
  if (before && (!worker->lease || worker->lease->uid != before->uid)) {
    lost_lease(*worker, before->uid);
  }
  const reconciler::WorkerView view_before = std::move(worker->view);
  worker->set_view();
  if (worker->lease) {
    const CachedWorkerLease& lease = *worker->lease.get();
    const SteadyTime now = deps_.loop.now();
    deps_.known.has_lease(lease.uid, worker);
    deps_.times.found(worker->namespace_ + "/" + lease.uid);
    deps_.times.seen(worker->key(), lease, worker->work.get().get(), before.get(), now);
    std::optional<SteadyTime>& cut_off_seen = worker->moments.cut_off_seen;
    if (worker->state() == reconciler::WorkerState::kCutOff && !cut_off_seen) cut_off_seen = now;
    deps_.looks.look_at_places(*worker, lease.uid, place_news(view_before, worker->view));
    count_hand_backs(*worker, view_before);
  }
  refresh(*worker);
  deps_.looks.look_at(*worker);
  if (worker->state() != state_before) deps_.looks.look_at_pool(worker->pool_key());
  deps_.looks.look_at_pool_soon(worker->pool_key());
}

void WorkerTracker::count_hand_backs(const Worker& worker, const reconciler::WorkerView& before) {
  if (!deps_.membership.holds(worker.namespace_)) return;
  for (std::int64_t n = handed_back(before, worker.view); n > 0; --n) {
    deps_.telemetry.handed_back(worker.namespace_, worker.pool_name);
  }
}

// What the answers to our own writes have brought may never have been.
void WorkerTracker::time_travelled() {
  const auto all = deps_.known.workers();
  for (const auto& [key, worker] : all) {
    worker->pod.forget_own();
    worker->lease.forget_own();
    worker->work.forget_own();
  }
  for (const auto& [key, known] : all) {
    const auto& worker = known;  // a lambda captures it
    const auto again = [&](const std::string& name) {
      return deps_.caches.leases.get(worker->namespace_ + "/" + name);
    };
    if (!again(worker_lease_name(worker->pod_uid))) lease_is_gone(worker, /*is_work=*/false);
    if (!again(work_lease_name(worker->pod_uid))) lease_is_gone(worker, /*is_work=*/true);
    deps_.looks.add(worker->queue_key());
  }
}

// ---- What follows.

reconciler::PodIs WorkerTracker::pod_is(const Worker& worker) {
  using reconciler::PodIs;
  if (worker.pod) {
    if (!worker.pod->worker.ended) return PodIs::kThere;
    return worker.pod->dead ? PodIs::kDead : PodIs::kDoubted;
  }
  if (worker.pod_history.was_there) return PodIs::kGone;
  const WorkerLeasePtr& lease = (worker.lease ? worker.lease : worker.work).get();
  // The pod was there before its Leases.
  cache::Reach& pods = deps_.reaches.pods;
  const bool is_new = lease && pods.has(worker.namespace_, pods.since(lease->uid, lease->version),
                                        worker.queue_key());
  return is_new ? PodIs::kGone : PodIs::kUnknown;
}

reconciler::WorkerFacts WorkerTracker::facts(const Worker& worker) {
  const SteadyTime now = deps_.loop.now();
  const PoolPtr pool = deps_.caches.pools.get(worker.pool_key());
  reconciler::WorkerFacts facts = worker_facts(worker, pool.get(), pod_is(worker));
  if (!facts.has_lease) return facts;
  facts.silent_for = deps_.times.silent_for(worker.key(), facts.duration, now);
  facts.lags_for = deps_.times.lags_for(worker.key(), facts.duration, now);
  if (facts.is == reconciler::WorkerIs::kLive && facts.silent_for >= facts.duration) {
    facts.held_back = deps_.times.held_back(worker.key(), facts.duration, now);
  }
  if (facts.is == reconciler::WorkerIs::kCutOff) facts.is_needed = is_needed(worker);
  return facts;
}

bool WorkerTracker::is_needed(const Worker& worker) {
  const std::string& uid = worker.lease->uid;
  const auto pool = deps_.known.find(worker.pool_key());
  if (pool && pool->book.workers().of(uid).is_named()) return true;
  const SteadyTime now = deps_.loop.now();
  const auto& cut_off_seen = worker.moments.cut_off_seen;
  if (cut_off_seen && now - *cut_off_seen < kLeaseStays) {
    deps_.looks.add_after(worker.queue_key(), *cut_off_seen + kLeaseStays - now);
    return true;
  }
  cache::Reach& jobs = deps_.reaches.jobs;
  const cache::Moment seen = jobs.since(uid, worker.lease->version);
  return !jobs.has(worker.namespace_, seen, worker.queue_key());
}

reconciler::WorkerDecision WorkerTracker::refresh(Worker& worker) {
  reconciler::WorkerDecision decision = decide_worker(facts(worker));
  worker.duty.takes = false;
  if (!worker.lease) return decision;
  const KnownPool pool = deps_.known.pool(worker.pool_key());
  const auto spec = deps_.caches.pools.get(worker.pool_key());
  worker.duty.takes = decision.takes && may_take(worker, spec.get());
  const std::string& uid = worker.lease->uid;
  const std::int64_t free = pool->book.room();
  pool->book.put_worker({worker.pod_name, uid, worker.duration()}, worker.slots(),
                        worker.duty.takes, worker.view.work.value_or(Work()), worker.view.report);
  if (pool->book.workers().of(uid).attempts() > 0 ||
      worker.state() != reconciler::WorkerState::kLive) {
    worker.rest.since.reset();
    worker.rest.seen_otherwise = true;
  } else if (!worker.rest.since) {
    worker.rest.since = deps_.loop.now();
  }
  if (pool->book.room() > free) deps_.looks.wake(worker.pool_key(), *pool);
  return decision;
}

}  // namespace holdfast::pools
