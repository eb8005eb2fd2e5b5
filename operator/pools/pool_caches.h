// The caches that the controller of pools reads, and whether they are as new as it needs. Loop
// only.
#pragma once

#include <string>

#include "client/cache/reach.h"
#include "client/cache/view.h"
#include "operator/codecs/job_codec.h"
#include "operator/jobs/watched_shards.h"
#include "operator/pools/pool_codec.h"
#include "operator/pools/worker_leases.h"
#include "operator/pools/worker_pod.h"

namespace holdfast::pools {

// Of job_kind(), pool_kind(), worker_pod_kind() and worker_lease_kind().
struct PoolCaches {
  cache::View<codecs::CachedJob> jobs;
  cache::View<CachedPool> pools;
  cache::View<CachedWorkerPod> pods;
  cache::View<CachedWorkerLease> leases;
  const jobs::WatchedShards& watched_shards;

  // All that workers and jobs are made from has been listed. `shard`: of the namespace.
  bool are_read(int shard, const std::string& ns) const {
    return pods->version(ns) > 0 && leases->version(ns) > 0 && have_jobs(shard, ns);
  }
  // A job that the cache lacks is not there.
  bool have_jobs(int shard, const std::string& ns) const { return watched_shards.read(shard, ns); }
};

struct PoolReaches {
  cache::Reach jobs;
  cache::Reach pods;
  cache::Reach leases;

  void on_progress() {
    jobs.on_progress();
    pods.on_progress();
    leases.on_progress();
  }
  void time_travelled() {
    jobs.time_travelled();
    pods.time_travelled();
    leases.time_travelled();
  }
  void stop() {
    jobs.stop();
    pods.stop();
    leases.stop();
  }
};

}  // namespace holdfast::pools
