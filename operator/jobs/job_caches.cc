#include "operator/jobs/job_caches.h"

#include "operator/jobs/pod_index.h"
#include "operator/jobs/shard_selectors.h"
#include "reconciler/outage.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {

JobCaches::JobCaches(cache::View<codecs::CachedJob> jobs, cache::View<codecs::CachedPod> pods,
                     observe::HeartbeatMonitor& heartbeats,
                     const membership::Membership& membership,
                     const observe::NamespaceReadings& readings,
                     const WatchedShards& watched_shards)
    : jobs_(jobs),
      pods_(pods),
      heartbeats_(heartbeats),
      membership_(membership),
      readings_(readings),
      watched_shards_(watched_shards) {
  add_pod_indexes(pods_->store());
}

codecs::JobPtr JobCaches::job_of(const codecs::CachedPod& pod) const {
  const codecs::JobPtr job = jobs_.get(job_key(pod));
  return job && job->uid == pod.job_uid() ? job : nullptr;
}

codecs::JobPtr JobCaches::job_of(const codecs::CachedHeartbeat& lease) const {
  const codecs::JobPtr job = jobs_.get(lease.namespace_ + "/" + lease.job_name);
  return job && job->uid == lease.owner_uid ? job : nullptr;
}

void JobCaches::own_pods_lag(const codecs::CachedJob& job, int pods) const {
  for (int pod = 0; pod < pods; ++pod) {
    pods_->watch_lags(job.namespace_, {{"job", job.key()}, {"seen", "our own pod"}});
  }
}

cache::Selector JobCaches::selects_held(const std::string& requirement) const {
  return by_job_shard(requirement, membership_.held_shards(), membership_.shards());
}

int JobCaches::in_all_shards(int watched) const {
  return reconciler::in_all_shards(watched, watched_shards_.read_shards(), membership_.shards());
}

bool JobCaches::may_be_ours(const codecs::CachedHeartbeat& lease) const {
  const std::string& ns = lease.namespace_;
  const auto labelled = reconciler::labelled_shard(lease.shard_label, membership_.shards());
  if (labelled) return shows_all(*labelled, ns);
  return shows_all(membership_.shard_of(lease.owner_uid), ns) ||
         shows_all(membership_.shard_of(ns), ns);
}

bool JobCaches::counts_here(const codecs::CachedJob& job) const {
  return reconciler::belongs_elsewhere(job.job, membership_.shards())
             ? membership_.holds(reconciler::own_shard_key(job.job))
             : holds_shard_of(job);
}

int JobCaches::shard_of(const codecs::CachedPod& pod) const {
  return membership_.shard_of_pod(pod.pod.shard_label, pod.job_uid());
}

int JobCaches::shard_of(const codecs::CachedJob& job) const {
  return membership_.shard_of(reconciler::shard_key(job.job));
}

}  // namespace holdfast::jobs
