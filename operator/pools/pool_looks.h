// Which pools, workers and jobs are looked at again: pools and workers in the queue of this
// controller, jobs in theirs. A pool's key is "namespace/name", a worker's is
// Worker::queue_key(). Loop only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/controller/work_queue.h"
#include "core/loop.h"
#include "operator/membership/membership.h"
#include "operator/pools/known_pools.h"
#include "operator/pools/pool_caches.h"

namespace holdfast::pools {

class PoolLooks {
 public:
  struct Dependencies {
    Loop& loop;
    const membership::Membership& membership;
    cache::View<CachedPool> pools;
    const KnownPools& known;
    controller::WorkQueue& queue;
    // Look at the job with this key ("namespace/name") again.
    std::function<void(const std::string& key, controller::Priority priority)> look_at_job;
  };
  explicit PoolLooks(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  void add(const std::string& key) { deps_.queue.add(key); }
  void add_after(const std::string& key, Duration delay) { deps_.queue.add_after(key, delay); }
  void look_at_job(const std::string& key, controller::Priority priority) {
    deps_.look_at_job(key, priority);
  }

  // Only if this replica holds the namespace's shard.
  void look_at(const Worker& worker);
  void look_at_pool(const std::string& key);
  // Jobs and Leases change all the time. The pool's size need not follow each change.
  void look_at_pool_soon(const std::string& key);
  // The workers with these Leases, whose places have changed.
  void look_at_workers(const std::string& pool_key, const std::vector<std::string>& lease_uids);
  // The jobs with places on the worker that had this Lease.
  void look_at_places(const Worker& worker, const std::string& lease_uid, const PlaceNews& news);
  // The jobs whose turn it is to take free slots.
  void wake(const std::string& pool_key, Pool& pool);

 private:
  bool holds(const std::string& ns) const { return deps_.membership.holds(ns); }

  Dependencies deps_;
};

// Of the pool of the job's current stage. Empty: it has none.
std::string pool_key_of(const codecs::CachedJob& job);

}  // namespace holdfast::pools
