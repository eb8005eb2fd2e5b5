// Look-ups of the controller of jobs in the caches of jobs, pods and Leases. Says to which shard an
// object belongs. Loop only. The caches outlive it.
#pragma once

#include <string>

#include "client/cache/view.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/watched_shards.h"
#include "operator/membership/membership.h"
#include "operator/observe/heartbeat_monitor.h"
#include "operator/observe/namespace_readings.h"

namespace holdfast::jobs {

class JobCaches {
 public:
  // `jobs` and `pods` are of job_kind() and pod_kind(). Adds the indexes of pods (pod_index.h).
  JobCaches(cache::View<codecs::CachedJob> jobs, cache::View<codecs::CachedPod> pods,
            observe::HeartbeatMonitor& heartbeats, const membership::Membership& membership,
            const observe::NamespaceReadings& readings, const WatchedShards& watched_shards);

  const cache::View<codecs::CachedJob>& jobs() const { return jobs_; }
  const cache::View<codecs::CachedPod>& pods() const { return pods_; }
  observe::HeartbeatMonitor& heartbeats() const { return heartbeats_; }

  // Null: the cache does not have it.
  codecs::JobPtr job(const std::string& key) const { return jobs_.get(key); }
  codecs::PodPtr pod(const std::string& namespace_, const std::string& name) const {
    return pods_.get(namespace_ + "/" + name);
  }
  // The job that the pod or the Lease names by name and UID.
  codecs::JobPtr job_of(const codecs::CachedPod& pod) const;
  codecs::JobPtr job_of(const codecs::CachedHeartbeat& lease) const;

  // So many pods that we created have not been shown for too long: their watch lags.
  void own_pods_lag(const codecs::CachedJob& job, int pods) const;

  int shard_of(const codecs::CachedPod& pod) const;
  int shard_of(const codecs::CachedJob& job) const;
  // This replica has the job's shard, even if it will be handed over.
  bool holds_shard_of(const codecs::CachedJob& job) const { return holds_shard(shard_of(job)); }
  bool holds_shard(int shard) const { return membership_.holds_shard(shard); }
  // This replica has the shard of the job, or that of its queue or its pool, if the status says
  // another one (reconciler/shards.h). The holder of that one corrects it.
  bool counts_here(const codecs::CachedJob& job) const;
  // So it may be of a job of the shards held here. Without a label its job's UID or namespace says
  // the shard.
  bool may_be_ours(const codecs::CachedHeartbeat& lease) const;
  // All that such a shard has in this namespace is in the caches: what they lack is not there.
  bool shows_all(int shard, const std::string& namespace_) const {
    return holds_shard(shard) && has_read(shard, namespace_);
  }
  // The jobs of the shards held here that `requirement` selects.
  cache::Selector selects_held(const std::string& requirement) const;
  // What all replicas count, if this one has counted so many in the shards that it watches.
  int in_all_shards(int watched) const;

  // Before that, nothing is done about the namespace's jobs, or the jobs of the shard there. Jobs that
  // are not read yet may be missing in the cache.
  bool has_read(const std::string& namespace_) const { return readings_.read(namespace_); }
  bool has_read(int shard, const std::string& namespace_) const {
    return watched_shards_.read(shard, namespace_);
  }

 private:
  const cache::View<codecs::CachedJob> jobs_;
  const cache::View<codecs::CachedPod> pods_;
  observe::HeartbeatMonitor& heartbeats_;
  const membership::Membership& membership_;
  const observe::NamespaceReadings& readings_;
  const WatchedShards& watched_shards_;
};

}  // namespace holdfast::jobs
