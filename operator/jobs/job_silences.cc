#include "operator/jobs/job_silences.h"

#include <algorithm>

#include "operator/jobs/pod_index.h"
#include "reconciler/run/pod_times.h"

namespace holdfast::jobs {
namespace {

void want(observe::WindowKeeper::Wanted& wanted, int shard, Duration most) {
  if (std::find(wanted.shards.begin(), wanted.shards.end(), shard) == wanted.shards.end()) {
    wanted.shards.push_back(shard);
  }
  wanted.most = std::max(wanted.most, most);
}

bool has_live_leases(const codecs::CachedJob& job) {
  return job.job.spec.heartbeat && !is_terminal(job.job.status.phase);
}

}  // namespace

// The breaker may add a window to a silent node's. A missing node also matters for the previous
// attempt's pods: do they still live?
std::optional<Duration> wait_for_node(const codecs::CachedJob& job, const std::string& pod,
                                      bool missing) {
  if (is_terminal(job.job.status.phase)) return std::nullopt;
  const reconciler::Run* const run = job.job.status.run_of_pod(pod);
  const bool waits = run && (missing || run->open());
  if (!waits && !(missing && is_stopping(job.job.status))) return std::nullopt;
  return (missing ? 1 : 2) * job.job.spec.lost_after;
}

std::optional<Duration> wait_for_pod(const codecs::CachedJob& job, const codecs::CachedPod& pod,
                                     bool going) {
  const reconciler::Run* const run = job.job.status.run_of_pod(pod.name);
  const bool runs = run && run->open();
  if (!runs && !(going && is_stopping(job.job.status))) return std::nullopt;
  // Until its first container runs, a pod's time counts from its binding.
  if (!going && !pod.pod.started() && !reconciler::recorded_start(*run)) return std::nullopt;
  const reconciler::Spec& spec = job.job.spec;
  return going ? spec.lost_after : spec.start_deadline;
}

// A healthy holder with a long Lease may be silent for longer than this process lives. So dates say
// whether it is late; they only decide whether to record its silence.
std::optional<Duration> wait_for_lease(const codecs::CachedJob& job,
                                       const codecs::CachedHeartbeat& lease, Duration silent,
                                       std::optional<Duration> age) {
  if (!has_live_leases(job)) return std::nullopt;
  const Duration duration = job.job.spec.heartbeat->lease_duration;
  const bool renews = !lease.lease.holder.empty() && !lease.lease.ended;
  const bool late = age && *age >= duration / 2;
  if (renews && silent < duration / 2 && !late) return std::nullopt;
  Duration window = lease.lease.ended ? Duration(job.job.spec.lost_after) : duration;
  // The next holder waits for the longest Lease of any stage so far.
  for (const reconciler::Stage& stage : job.job.stages) {
    if (stage.spec.heartbeat)
      window = std::max<Duration>(window, stage.spec.heartbeat->lease_duration);
  }
  return 2 * window;
}

void JobSilences::keep_windows(observe::WindowKeeper& windows) {
  const auto end = [this](const std::string& key, Duration) { return end_wanted(key); };
  const auto still = [this](const auto& key, Duration) { return pod_wanted(key, false); };
  const auto going = [this](const auto& key, Duration) { return pod_wanted(key, true); };
  const auto lease = [this](const auto& key, Duration silent) { return lease_wanted(key, silent); };
  const auto clock = [this](const std::string& key) { return pods_time(namespace_of(key)); };
  nodes_.keep_windows(windows, [this](const std::string& node, bool missing) {
    return node_wanted(node, missing);
  });
  caches_.heartbeats().keep_windows(windows, {lease, lease, lease});
  windows_.keep_windows(windows, clock, {still, going, end});
}

observe::WindowKeeper::Wanted JobSilences::node_wanted(const std::string& node,
                                                       bool missing) const {
  Wanted wanted;
  for (const codecs::PodPtr& pod : caches_.pods().by_index(kByNode, node)) {
    const codecs::JobPtr job = caches_.job_of(*pod);
    const auto most = job ? wait_for_node(*job, pod->name, missing) : std::nullopt;
    if (most) want(wanted, caches_.shard_of(*job), *most);
  }
  return wanted;
}

observe::WindowKeeper::Wanted JobSilences::pod_wanted(const std::string& key, bool going) const {
  Wanted wanted;
  const codecs::PodPtr pod = caches_.pods().get(key);
  const codecs::JobPtr job = pod ? caches_.job_of(*pod) : nullptr;
  const auto most = job ? wait_for_pod(*job, *pod, going) : std::nullopt;
  if (most) want(wanted, caches_.shard_of(*job), *most);
  return wanted;
}

observe::WindowKeeper::Wanted JobSilences::lease_wanted(const std::string& key,
                                                        Duration silent) const {
  Wanted wanted;
  const codecs::HeartbeatPtr lease = caches_.heartbeats().cached().get(key);
  const codecs::JobPtr job = lease ? caches_.job_of(*lease) : nullptr;
  if (!job || !has_live_leases(*job)) return wanted;
  std::optional<Duration> age;
  if (const auto renewed = lease->lease.renewed_at) {
    age = client_.server_clock().now(loop_.now()) - *renewed;
  }
  const auto most = wait_for_lease(*job, *lease, silent, age);
  if (most) want(wanted, caches_.shard_of(*job), *most);
  return wanted;
}

observe::WindowKeeper::Wanted JobSilences::end_wanted(const std::string& key) const {
  Wanted wanted;
  const codecs::JobPtr job = caches_.job(key);
  if (job) want(wanted, caches_.shard_of(*job), job->job.spec.lost_after);
  return wanted;
}

}  // namespace holdfast::jobs
