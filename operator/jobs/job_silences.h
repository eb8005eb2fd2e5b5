// The silences that verdicts on jobs wait for: of nodes, Leases, pods and jobs. The shards' Leases
// keep those that a verdict needs, so that the next holder of a shard goes on counting. Loop only.
#pragma once

#include <optional>
#include <string>

#include "client/kube/client.h"
#include "core/loop.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_windows.h"
#include "operator/observe/node_monitor.h"
#include "operator/observe/window_keeper.h"

namespace holdfast::jobs {

// How long a job waits for a silence, at most; none: it does not wait. Pure.
//
// For the node of this pod of the job, which is silent, or has no object (`missing`).
std::optional<Duration> wait_for_node(const codecs::CachedJob& job, const std::string& pod,
                                      bool missing);
// For the next step of its pod, or for the end of a deleted one (`going`).
std::optional<Duration> wait_for_pod(const codecs::CachedJob& job, const codecs::CachedPod& pod,
                                     bool going);
// For a renewal of its Lease. This process has seen none for `silent`. `age`: of the last renewal,
// by its date.
std::optional<Duration> wait_for_lease(const codecs::CachedJob& job,
                                       const codecs::CachedHeartbeat& lease, Duration silent,
                                       std::optional<Duration> age);

class JobSilences {
 public:
  JobSilences(Loop& loop, const kube::Client& client, const JobCaches& caches,
              observe::NodeMonitor& nodes)
      : loop_(loop), client_(client), caches_(caches), nodes_(nodes) {}

  // Call it once. `windows` is not used after this is destroyed.
  void keep_windows(observe::WindowKeeper& windows);

  // The caches' news of pods and jobs.
  void see(const codecs::CachedPod& pod) { windows_.see(pod, pods_time(pod.namespace_)); }
  void see(const codecs::CachedJob& job) { windows_.see(job, pods_time(job.namespace_)); }
  void gone(const codecs::CachedPod& pod) { windows_.gone(pod); }
  void gone(const codecs::CachedJob& job) { windows_.gone(job); }

  // See JobWindows. `asked`: up to when.
  Duration still_for(const std::string& namespace_, const reconciler::PodView& pod,
                     const observe::LookTimes& asked) const {
    return windows_.still_for(namespace_, pod, observe::until(asked.pods, pods_time(namespace_)));
  }
  Duration going_for(const codecs::CachedJob& job, const reconciler::PodView& pod,
                     const observe::LookTimes& asked) const {
    return windows_.going_for(job.namespace_, pod, job.job.spec.lost_after,
                              observe::until(asked.pods, pods_time(job.namespace_)));
  }
  Duration cancelling_for(const codecs::CachedJob& job, const observe::LookTimes& asked) const {
    return windows_.cancelling_for(job, job.job.spec.lost_after,
                                   observe::until(asked.pods, pods_time(job.namespace_)));
  }

 private:
  using Wanted = observe::WindowKeeper::Wanted;
  Wanted node_wanted(const std::string& node, bool missing) const;
  Wanted pod_wanted(const std::string& key, bool going) const;
  Wanted lease_wanted(const std::string& key, Duration silent) const;
  Wanted end_wanted(const std::string& key) const;
  reconciler::LiveTime pods_time(const std::string& namespace_) const {
    return nodes_.pods_time(namespace_);
  }

  Loop& loop_;
  const kube::Client& client_;
  const JobCaches& caches_;
  observe::NodeMonitor& nodes_;
  JobWindows windows_;
};

}  // namespace holdfast::jobs
