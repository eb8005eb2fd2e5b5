#include "operator/jobs/held_shards.h"

#include <utility>

#include "operator/jobs/job_facts.h"
#include "operator/jobs/pod_index.h"

namespace holdfast::jobs {

HeldShards::HeldShards(Loop& loop, const kube::Client& client, const JobCaches& caches,
                       const membership::Membership& membership, JobMemories& memories, Look look)
    : loop_(loop),
      client_(client),
      caches_(caches),
      membership_(membership),
      memories_(memories),
      look_(std::move(look)) {}

void HeldShards::gained(int shard) {
  gained_at_.try_emplace(shard, loop_.now());
  if (!gained_.insert(shard).second || gained_.size() > 1) return;
  loop_.post([this] { look_at_gained(); });
}

void HeldShards::lost(int shard) {
  gained_.erase(shard);
  gained_at_.erase(shard);
}

void HeldShards::look_at_gained() {
  const std::set<int> gained = std::exchange(gained_, {});
  look_at_all([&](const std::string&, int shard) { return gained.count(shard) != 0; });
}

void HeldShards::look_at_namespace(const std::string& watched) {
  look_at_all([&](const std::string& namespace_, int shard) {
    return (watched.empty() || namespace_ == watched) && membership_.holds_shard(shard);
  });
}

void HeldShards::look_at_shards(const std::set<int>& shards, const std::string& watched) {
  look_at_all([&](const std::string& namespace_, int shard) {
    return shards.count(shard) != 0 && (watched.empty() || namespace_ == watched) &&
           membership_.holds_shard(shard);
  });
}

void HeldShards::look_at_all(const IsMeant& is_meant) {
  caches_.jobs().for_each([&](const codecs::JobPtr& job) {
    if (!is_meant(job->namespace_, caches_.shard_of(*job))) return;
    inherit(*job, moment_of(*job));
    look_(job->key());
  });
  caches_.pods().for_each([&](const codecs::PodPtr& pod) {
    if (!is_meant(pod->namespace_, caches_.shard_of(*pod))) return;
    if (const std::string key = look_key(*pod); !key.empty()) look_(key);
  });
  // If the cache lacks its job, a Lease leads back to it.
  caches_.heartbeats().cached().for_each([&](const codecs::HeartbeatPtr& lease) {
    const std::string key = lease->namespace_ + "/" + lease->job_name;
    if (leads_back(*lease) && caches_.may_be_ours(*lease) && !caches_.job(key)) look_(key);
  });
}

// However long this replica has had the shard, the other one had the job until now.
void HeldShards::came(const codecs::CachedJob& job) {
  if (!caches_.holds_shard_of(job) || memories_.find(job)) return;
  if (reconciler::is_terminal(job.job.status.phase)) return;
  Moment moment = moment_of(job);
  moment.held = Duration::zero();
  inherit(job, moment);
}

// Its attempts may be another replica's, whose requests for their pods may still be applied.
void HeldShards::inherit(const codecs::CachedJob& job, const Moment& moment) {
  for (const reconciler::Run& run : job.job.status.runs) {
    if (run.open()) memories_.remember(job)->attempts[run.attempt].inherited = true;
  }
  for (const auto& one : reconciler::podless_attempts(job.job.status, moment.now)) {
    AttemptMemory& attempt = memories_.remember(job)->attempts[one.attempt];
    attempt.inherit(moment.steady + may_come_for(one, moment));
  }
}

Moment HeldShards::moment_of(const codecs::CachedJob& job) const {
  Moment moment;
  moment.steady = loop_.now();
  moment.now = client_.server_clock().now(moment.steady);
  moment.shown = caches_.pods()->version(job.namespace_);
  const auto gained = gained_at_.find(caches_.shard_of(job));
  if (gained != gained_at_.end()) moment.held = moment.steady - gained->second;
  return moment;
}

}  // namespace holdfast::jobs
