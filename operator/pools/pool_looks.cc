#include "operator/pools/pool_looks.h"

namespace holdfast::pools {
namespace {

constexpr std::chrono::milliseconds kPoolPause{100};

}  // namespace

std::string pool_key_of(const codecs::CachedJob& job) {
  return job.job.spec.pool ? job.namespace_ + "/" + job.job.spec.pool->name : "";
}

void PoolLooks::look_at(const Worker& worker) {
  if (holds(worker.namespace_)) add(worker.queue_key());
}

void PoolLooks::look_at_pool(const std::string& key) {
  if (holds(kube::namespace_of(key))) add(key);
}

void PoolLooks::look_at_pool_soon(const std::string& key) {
  if (holds(kube::namespace_of(key))) add_after(key, kPoolPause);
}

void PoolLooks::look_at_workers(const std::string& key, const std::vector<std::string>& uids) {
  for (const std::string& uid : uids) {
    if (const WorkerPtr worker = deps_.known.with_lease(uid)) {
      look_at(*worker);
    } else {
      look_at_pool(key);
    }
  }
  if (!uids.empty()) look_at_pool_soon(key);
}

void PoolLooks::look_at_places(const Worker& worker, const std::string& lease_uid,
                               const PlaceNews& news) {
  const auto pool = deps_.known.find(worker.pool_key());
  if (!pool || !holds(worker.namespace_)) return;
  const WorkerSlots& slots = pool->book.workers().of(lease_uid);
  const auto look = [&](const std::string& job_name) {
    look_at_job(worker.namespace_ + "/" + job_name, controller::Priority::kFresh);
  };
  if (news.of_open) {
    for (const auto& [id, place] : slots.open) look(place.job_name);
  }
  if (news.of_closed) {
    for (const auto& [id, place] : slots.closed) look(place.job_name);
  }
  for (const AttemptId& id : news.ids) {
    const std::string name = slots.job_at(id);
    if (!name.empty()) look(name);
  }
}

void PoolLooks::wake(const std::string& key, Pool& pool) {
  const std::string ns = kube::namespace_of(key);
  if (!pool.book.may_wake() || !holds(ns)) return;
  const auto spec = deps_.pools.get(key);
  if (spec && !spec->spec.unknown.empty()) return;  // no slot is offered
  const std::vector<std::string> names = pool.book.wake(deps_.loop.now());
  for (const std::string& name : names) look_at_job(ns + "/" + name, controller::Priority::kStart);
  // If one of them does not look in time, it is the next one's turn.
  if (!names.empty()) add_after(key, SlotLine::kTurn);
}

}  // namespace holdfast::pools
