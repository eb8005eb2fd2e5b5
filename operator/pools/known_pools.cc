#include "operator/pools/known_pools.h"

#include <utility>

namespace holdfast::pools {

KnownPool KnownPools::pool(const std::string& key) {
  KnownPool& pool = pools_[key];
  if (!pool) pool = std::make_shared<Pool>();
  return pool;
}

KnownPool KnownPools::find(const std::string& key) const {
  const auto found = pools_.find(key);
  return found == pools_.end() ? nullptr : found->second;
}

void KnownPools::forget_if_empty(const std::string& key) {
  const auto found = pools_.find(key);
  if (found != pools_.end() && found->second->empty()) pools_.erase(found);
}

WorkerPtr KnownPools::find_worker(const std::string& ns, const std::string& pod_uid) const {
  const auto found = workers_.find(ns + "/" + pod_uid);
  return found == workers_.end() ? nullptr : found->second;
}

WorkerPtr KnownPools::worker(const std::string& ns, const std::string& pool_name,
                             const std::string& pod_uid) {
  if (WorkerPtr known = find_worker(ns, pod_uid)) return known;
  if (pool_name.empty() || pod_uid.empty()) return nullptr;
  auto worker = std::make_shared<Worker>();
  worker->namespace_ = ns;
  worker->pool_name = pool_name;
  worker->pod_uid = pod_uid;
  workers_[worker->key()] = worker;
  pool(worker->pool_key())->workers[pod_uid] = worker;
  return worker;
}

void KnownPools::forget_if_gone(const Worker& worker) {
  if (worker.pod || worker.lease || worker.work) return;
  if (const auto pool = find(worker.pool_key())) pool->workers.erase(worker.pod_uid);
  workers_.erase(worker.key());
}

WorkerPtr KnownPools::with_lease(const std::string& lease_uid) const {
  const auto found = by_lease_.find(lease_uid);
  return found == by_lease_.end() ? nullptr : found->second;
}

void KnownPools::has_lease(const std::string& lease_uid, WorkerPtr worker) {
  by_lease_[lease_uid] = std::move(worker);
}

}  // namespace holdfast::pools
