// Which silences are recorded, and for which shards: only those that a job's verdict needs.
#include <algorithm>

#include "operator/jobs/job_controller.h"
#include "reconciler/run/pod_times.h"

namespace holdfast::controller {
namespace {

using Wanted = WindowKeeper::Wanted;

void want(Wanted& wanted, int shard, Duration most) {
  if (std::find(wanted.shards.begin(), wanted.shards.end(), shard) == wanted.shards.end()) {
    wanted.shards.push_back(shard);
  }
  wanted.most = std::max(wanted.most, most);
}

}  // namespace

void JobController::keep_windows(WindowKeeper& windows) {
  const auto cancelling = [this](const std::string& key, Duration) {
    Wanted wanted;
    const auto job = jobs_.get(key);
    if (job) want(wanted, shard_of(*job), job->job.spec.lost_after);
    return wanted;
  };
  const auto still = [this](const auto& key, Duration) { return pod_wanted(key, false); };
  const auto going = [this](const auto& key, Duration) { return pod_wanted(key, true); };
  const auto lease = [this](const auto& key, Duration silent) { return lease_wanted(key, silent); };
  const auto clock = [this](const std::string& key) { return nodes_.pods_time(namespace_of(key)); };
  nodes_.keep_windows(windows, [this](const std::string& node, bool missing) {
    return node_wanted(node, missing);
  });
  heartbeats_.keep_windows(windows, {lease, lease, lease});
  job_windows_.keep_windows(windows, clock, {still, going, cancelling});
}

JobPtr JobController::job_of(const CachedPod& pod) {
  const auto job = jobs_.get(job_key(pod));
  return job && job->uid == pod.job_uid() ? job : nullptr;
}

// The breaker may add a window to a silent node's. A missing node also matters for the previous
// attempt's pods: do they still live?
Wanted JobController::node_wanted(const std::string& node, bool missing) {
  Wanted wanted;
  for (const PodPtr& object : pods_.by_index(kByNode, node)) {
    const auto job = job_of(*object);
    if (!job || is_terminal(job->job.status.phase)) continue;
    const reconciler::Run* const run = job->job.status.run_of_pod(object->name);
    const bool waits = run && (missing || run->open());
    if (!waits && !(missing && is_stopping(job->job.status))) continue;
    want(wanted, shard_of(*job), (missing ? 1 : 2) * job->job.spec.lost_after);
  }
  return wanted;
}

Wanted JobController::pod_wanted(const std::string& key, bool going) {
  Wanted wanted;
  const PodPtr pod = pods_.get(key);
  const auto job = pod ? job_of(*pod) : nullptr;
  if (!job) return wanted;
  const reconciler::Run* const run = job->job.status.run_of_pod(pod->name);
  const bool runs = run && run->open();
  if (!runs && !(going && is_stopping(job->job.status))) return wanted;
  // Until its first container runs, a pod's time counts from its binding.
  if (!going && !pod->pod.started() && !reconciler::recorded_start(*run)) return wanted;
  const reconciler::Spec& spec = job->job.spec;
  want(wanted, shard_of(*job), going ? spec.lost_after : spec.start_deadline);
  return wanted;
}

// A healthy holder with a long Lease may be silent for longer than this process lives. So dates say
// whether it is late; they only decide whether to record its silence.
Wanted JobController::lease_wanted(const std::string& key, Duration silent) {
  Wanted wanted;
  const auto lease = heartbeats_.cached().get(key);
  if (!lease) return wanted;
  const auto job = jobs_.get(lease->namespace_ + "/" + lease->job_name);
  if (!job || job->uid != lease->owner_uid || !job->job.spec.heartbeat) return wanted;
  if (is_terminal(job->job.status.phase)) return wanted;
  const Duration duration = job->job.spec.heartbeat->lease_duration;
  const bool renews = !lease->lease.holder.empty() && !lease->lease.ended;
  const bool late = lease->lease.renewed_at && now() - *lease->lease.renewed_at >= duration / 2;
  if (renews && silent < duration / 2 && !late) return wanted;
  Duration window = lease->lease.ended ? Duration(job->job.spec.lost_after) : duration;
  // The next holder waits for the longest Lease of any stage so far.
  for (const reconciler::Stage& stage : job->job.stages) {
    if (stage.spec.heartbeat)
      window = std::max<Duration>(window, stage.spec.heartbeat->lease_duration);
  }
  want(wanted, shard_of(*job), 2 * window);
  return wanted;
}

}  // namespace holdfast::controller
