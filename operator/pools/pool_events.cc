// What the caches, and the answers to our own writes, tell the controller of pools.
#include <algorithm>
#include <utility>

#include "operator/jobs/job_controller.h"
#include "operator/pools/pool_controller.h"
#include "operator/pools/worker_facts.h"

namespace holdfast::controller {
namespace {

// Jobs and Leases change all the time. The pool's size need not follow each change.
constexpr std::chrono::milliseconds kPoolPause{100};
// A Lease stays this long after the cut-off: an intent may be under way that names the worker.
constexpr std::chrono::seconds kLeaseStays{10};

std::string pool_key_of(const JobPtr& job) {
  return job && job->job.spec.pool ? job->namespace_ + "/" + job->job.spec.pool->name : "";
}

// The watch is the truth, but where our own writes are ahead of it. After a restore of the API
// server's data it shows lower versions.
bool is_old(const kube::ObjectPtr& known, const kube::Object& seen, std::uint64_t& own,
            bool is_own) {
  if (!is_own) return known && seen.version <= own;
  if (known && known->version >= seen.version) return true;
  own = std::max(own, seen.version);
  return false;
}

// The agent has renewed its Lease, and says nothing else.
bool is_bare_renewal(const CachedWorkerLease& before, const CachedWorkerLease& after) {
  return before.uid == after.uid && before.words == after.words && before.holder == after.holder &&
         before.renewed.has_value() == after.renewed.has_value() &&
         before.refused == after.refused && before.error == after.error &&
         before.duration == after.duration;
}

}  // namespace

// ---- Books.

std::shared_ptr<Pool> PoolController::pool_of(const std::string& key) {
  std::shared_ptr<Pool>& pool = books_[key];
  if (!pool) pool = std::make_shared<Pool>();
  return pool;
}

std::shared_ptr<Pool> PoolController::find_pool(const std::string& key) const {
  const auto found = books_.find(key);
  return found == books_.end() ? nullptr : found->second;
}

PoolPtr PoolController::cached(const std::string& key) const { return pools_.get(key); }

WorkerPtr PoolController::find_worker(const std::string& ns, const std::string& pod_uid) const {
  const auto found = workers_.find(ns + "/" + pod_uid);
  return found == workers_.end() ? nullptr : found->second;
}

WorkerPtr PoolController::worker_of(const std::string& ns, const std::string& pool,
                                    const std::string& pod_uid) {
  if (WorkerPtr known = find_worker(ns, pod_uid)) return known;
  if (pool.empty() || pod_uid.empty()) return nullptr;
  auto worker = std::make_shared<Worker>();
  worker->namespace_ = ns;
  worker->pool_name = pool;
  worker->pod_uid = pod_uid;
  workers_[worker->key()] = worker;
  pool_of(worker->pool_key())->workers[pod_uid] = worker;
  return worker;
}

void PoolController::forget_if_empty(const WorkerPtr& worker) {
  if (worker->pod || worker->lease || worker->work) return;
  if (const auto pool = find_pool(worker->pool_key())) pool->workers.erase(worker->pod_uid);
  workers_.erase(worker->key());
}

// ---- Jobs.

void PoolController::on_job(const cache::View<CachedJob>::Change& change) {
  const JobPtr& before = change.before;
  const JobPtr& after = change.after;
  const std::string key_before = pool_key_of(before);
  const std::string key = pool_key_of(after);
  const bool is_same = before && after && before->uid == after->uid && key_before == key;
  if (!key_before.empty() && !is_same) {
    if (const auto pool = find_pool(key_before)) {
      look_at_workers(key_before, pool->book.erase(before->uid));
      wake(key_before, *pool);
      if (pool->book.empty() && pool->workers.empty()) books_.erase(key_before);
    }
  }
  if (!is_same) lacks_no_more(key_before, before.get());
  if (key.empty()) return;
  const std::shared_ptr<Pool> pool = pool_of(key);
  look_at_workers(key, pool->book.put(*after, loop_.now()));
  wake(key, *pool);
}

void PoolController::look_at_workers(const std::string& key, const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) {
    const auto worker = by_lease_.find(uid);
    if (worker != by_lease_.end()) {
      look_at_worker(*worker->second);
    } else if (membership_.holds(namespace_of(key))) {
      work_.queue().add(key);
    }
  }
  if (!uids.empty()) look_at_pool_soon(key);
}

void PoolController::look_at_worker(const Worker& worker) {
  if (membership_.holds(worker.namespace_)) work_.queue().add(worker.queue_key());
}

void PoolController::look_at_pool_soon(const std::string& key) {
  if (membership_.holds(namespace_of(key))) work_.queue().add_after(key, kPoolPause);
}

void PoolController::wake(const std::string& key, Pool& pool) {
  const std::string ns = namespace_of(key);
  if (!pool.book.may_wake() || !membership_.holds(ns)) return;
  const auto spec = cached(key);
  if (spec && !spec->spec.unknown.empty()) return;  // no slot is offered
  const std::vector<std::string> names = pool.book.wake(loop_.now());
  for (const std::string& name : names) look_at_(ns + "/" + name, Priority::kStart);
  // If one of them does not look in time, it is the next one's turn.
  if (!names.empty()) work_.queue().add_after(key, SlotLine::kTurn);
}

// ---- Pools.

void PoolController::on_pool(const cache::View<CachedPool>::Change& change) {
  const std::string key = change.latest().key();
  work_.queue().add(key);
  if (const auto pool = find_pool(key)) {
    for (const auto& [uid, worker] : pool->workers) {
      refresh(*worker);
      look_at_worker(*worker);
    }
    // Jobs that wait say whether there is a pool.
    if (!change.after) {
      for (const std::string& name : pool->book.lines().names()) {
        look_at_(namespace_of(key) + "/" + name, Priority::kLow);
      }
    }
  }
  look_at_lacking(key);
}

// ---- Workers' pods.

void PoolController::on_pod(const cache::View<CachedWorkerPod>::Change& change) {
  if (change.after) {
    show_pod(change.after, /*is_own=*/false);
    return;
  }
  const WorkerPtr worker = find_worker(change.before->namespace_, change.before->uid);
  if (worker) pod_is_gone(worker);
}

void PoolController::show_pod(WorkerPodPtr pod, bool is_own) {
  const WorkerPtr worker = worker_of(pod->namespace_, pod->pool_name, pod->uid);
  if (!worker || is_old(worker->pod, *pod, worker->own_pod, is_own)) return;
  see_placement(*worker, pod->placement, now());
  worker->pod = std::move(pod);
  worker->pod_name = worker->pod->name;
  worker->pod_was_there = true;
  worker->agent_duration = worker->pod->lease_duration;
  refresh(*worker);
  look_at_worker(*worker);
  look_at_pool_soon(worker->pool_key());
}

void PoolController::pod_is_gone(const WorkerPtr& worker) {
  worker->pod.reset();
  refresh(*worker);
  look_at_worker(*worker);
  look_at_pool_soon(worker->pool_key());
  forget_if_empty(worker);
}

// Created by this process, but deleted before the watch could show it.
void PoolController::forget_unseen_pods(Pool& pool) {
  std::vector<WorkerPtr> gone;
  for (const auto& [uid, worker] : pool.workers) {
    if (!worker->pod || pods_->version(worker->namespace_) < worker->pod->version) continue;
    const WorkerPodPtr cached = pods_.get(worker->pod->key());
    if (!cached || cached->uid != uid) gone.push_back(worker);
  }
  for (const WorkerPtr& worker : gone) pod_is_gone(worker);
}

reconciler::PodIs PoolController::pod_is(const Worker& worker) {
  using reconciler::PodIs;
  if (worker.pod) {
    if (!worker.pod->worker.ended) return PodIs::kThere;
    return worker.pod->dead ? PodIs::kDead : PodIs::kDoubted;
  }
  if (worker.pod_was_there) return PodIs::kGone;
  const WorkerLeasePtr& lease = worker.lease ? worker.lease : worker.work;
  // The pod was there before its Leases.
  const bool is_new =
      lease && pods_reach_.has(worker.namespace_, pods_reach_.since(lease->uid, lease->version),
                               worker.queue_key());
  return is_new ? PodIs::kGone : PodIs::kUnknown;
}

// ---- Workers' Leases.

void PoolController::on_lease(const cache::View<CachedWorkerLease>::Change& change) {
  if (change.after) {
    show_lease(change.after, /*is_own=*/false);
    return;
  }
  const CachedWorkerLease& lease = *change.before;
  const WorkerPtr worker = find_worker(lease.namespace_, lease.pod_uid);
  if (!worker) return;
  const WorkerLeasePtr& known = lease.is_work ? worker->work : worker->lease;
  if (known && known->uid == lease.uid) lease_is_gone(worker, lease.is_work);
}

void PoolController::show_lease(WorkerLeasePtr lease, bool is_own) {
  const WorkerPtr worker = worker_of(lease->namespace_, lease->pool_name, lease->pod_uid);
  if (!worker) return;
  const bool is_work = lease->is_work;
  WorkerLeasePtr& known = is_work ? worker->work : worker->lease;
  if (is_old(known, *lease, is_work ? worker->own_work : worker->own_lease, is_own)) return;
  const reconciler::WorkerState state = worker->state();
  const WorkerLeasePtr before = worker->lease;
  const bool is_bare = !is_work && known && is_bare_renewal(*known, *lease);
  known = std::move(lease);
  if (known->refused.empty()) worker->pool_uid = known->owner_uid;
  if (is_bare) {
    times_.seen(worker->key(), *known, worker->work.get(), loop_.now());
    if (!worker->takes) refresh(*worker);
    return;
  }
  leases_changed(worker, before, state);
}

void PoolController::lease_is_gone(const WorkerPtr& worker, bool is_work) {
  const reconciler::WorkerState state = worker->state();
  const WorkerLeasePtr before = worker->lease;
  (is_work ? worker->work : worker->lease).reset();
  leases_changed(worker, before, state);
  forget_if_empty(worker);
}

// The worker with this Lease is gone: another Lease is another worker's.
void PoolController::worker_is_another(Worker& worker, const std::string& lease_uid) {
  by_lease_.erase(lease_uid);
  times_.gone(worker.key());
  worker.cut_off_seen.reset();
  if (const auto pool = find_pool(worker.pool_key())) {
    pool->book.erase_worker(lease_uid);
  }
  look_at_places(worker, lease_uid, {.of_open = true, .of_closed = true, .ids = {}});
  // It looks after the places of workers without a Lease.
  if (membership_.holds(worker.namespace_)) work_.queue().add(worker.pool_key());
}

void PoolController::leases_changed(const WorkerPtr& worker, const WorkerLeasePtr& before,
                                    reconciler::WorkerState state_before) {
  if (before && (!worker->lease || worker->lease->uid != before->uid)) {
    worker_is_another(*worker, before->uid);
  }
  const reconciler::WorkerView view_before = std::move(worker->view);
  worker->set_view();
  if (worker->lease) {
    const CachedWorkerLease& lease = *worker->lease;
    by_lease_[lease.uid] = worker;
    times_.found(worker->namespace_ + "/" + lease.uid);
    times_.seen(worker->key(), lease, worker->work.get(), loop_.now());
    if (worker->state() == reconciler::WorkerState::kCutOff && !worker->cut_off_seen) {
      worker->cut_off_seen = loop_.now();
    }
    look_at_places(*worker, lease.uid, place_news(view_before, worker->view));
    tell_hand_backs(*worker, view_before);
  }
  refresh(*worker);
  look_at_worker(*worker);
  if (worker->state() != state_before && membership_.holds(worker->namespace_)) {
    work_.queue().add(worker->pool_key());
  }
  look_at_pool_soon(worker->pool_key());
}

void PoolController::look_at_places(const Worker& worker, const std::string& lease_uid,
                                    const PlaceNews& news) {
  const auto pool = find_pool(worker.pool_key());
  if (!pool || !membership_.holds(worker.namespace_)) return;
  const auto look = [&](const std::string& job_name) {
    look_at_(worker.namespace_ + "/" + job_name, Priority::kFresh);
  };
  if (news.of_open) {
    for (const auto& [id, place] : pool->book.workers().of(lease_uid).open) look(place.job_name);
  }
  if (news.of_closed) {
    for (const auto& [id, place] : pool->book.workers().of(lease_uid).closed) look(place.job_name);
  }
  for (const AttemptId& id : news.ids) {
    const std::string name = pool->book.workers().of(lease_uid).job_at(id);
    if (!name.empty()) look(name);
  }
}

// ---- What follows for a worker.

reconciler::WorkerFacts PoolController::facts(const Worker& worker) {
  const PoolPtr pool = cached(worker.pool_key());
  reconciler::WorkerFacts facts = worker_facts(worker, pool.get(), pod_is(worker));
  if (!facts.has_lease) return facts;
  facts.silent_for = times_.silent_for(worker.key(), facts.duration, loop_.now());
  facts.lags_for = times_.lags_for(worker.key(), facts.duration, loop_.now());
  if (facts.is == reconciler::WorkerIs::kLive && facts.silent_for >= facts.duration) {
    facts.held_back = times_.held_back(worker.key(), facts.duration, loop_.now());
  }
  if (facts.is == reconciler::WorkerIs::kCutOff) facts.is_needed = is_needed(worker);
  return facts;
}

bool PoolController::is_needed(const Worker& worker) {
  const auto pool = find_pool(worker.pool_key());
  if (pool && pool->book.workers().of(worker.lease->uid).is_named()) return true;
  if (worker.cut_off_seen && loop_.now() - *worker.cut_off_seen < kLeaseStays) {
    work_.queue().add_after(worker.queue_key(), *worker.cut_off_seen + kLeaseStays - loop_.now());
    return true;
  }
  const cache::Moment seen = jobs_reach_.since(worker.lease->uid, worker.lease->version);
  return !jobs_reach_.has(worker.namespace_, seen, worker.queue_key());
}

reconciler::WorkerDecision PoolController::refresh(Worker& worker) {
  reconciler::WorkerDecision decision = decide_worker(facts(worker));
  worker.takes = false;
  if (!worker.lease) return decision;
  const std::shared_ptr<Pool> pool = pool_of(worker.pool_key());
  const bool can_take = decision.takes && worker.is_readable() && worker.pod &&
                        worker.state() == reconciler::WorkerState::kLive &&
                        !worker.pod->worker.deleting && !worker.removed && !worker.wants_drain;
  const auto spec = cached(worker.pool_key());
  worker.takes = can_take && spec && worker.pod->owner_uid == spec->uid;
  const std::int64_t free = pool->book.room();
  pool->book.put_worker({worker.pod_name, worker.lease->uid, worker.duration()}, worker.slots(),
                        worker.takes, worker.view.work.value_or(Work()), worker.view.report);
  if (pool->book.workers().of(worker.lease->uid).attempts() > 0 ||
      worker.state() != reconciler::WorkerState::kLive) {
    worker.idle_since.reset();
    worker.seen_otherwise = true;
  } else if (!worker.idle_since) {
    worker.idle_since = loop_.now();
  }
  if (pool->book.room() > free) wake(worker.pool_key(), *pool);
  return decision;
}

}  // namespace holdfast::controller
