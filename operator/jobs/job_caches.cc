#include "operator/jobs/job_caches.h"

#include "operator/jobs/pod_index.h"
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

int JobCaches::shard_of(const codecs::CachedPod& pod) const {
  // By its label, or else by the UID of its job.
  return membership_.labelled(pod.pod.shard_label).value_or(membership_.shard_of(pod.job_uid()));
}

int JobCaches::shard_of(const codecs::CachedJob& job) const {
  return membership_.shard_of(reconciler::shard_key(job.job));
}

bool JobCaches::may_be_ours(const codecs::CachedHeartbeat& lease) const {
  if (const auto shard = membership_.labelled(lease.shard_label)) return holds_shard(*shard);
  return membership_.holds(lease.owner_uid) || membership_.holds(lease.namespace_);
}

int JobCaches::in_all(int ours) const {
  const auto held = static_cast<int>(membership_.held_shards().size());
  return held == 0 ? ours : ours * membership_.shards() / held;
}

}  // namespace holdfast::jobs
