// Since when pods and jobs have stood in a state that only time ends, as the caches show it: a pod
// whose next container does not start, a pod that was told to go, a job that is being cancelled.
// Kept for every job, whoever holds its shard: a replica that takes it over has watched all along.
// The part that asks nobody: live times of the pods' watch are handed in. Loop only.
#pragma once

#include <string>

#include "operator/jobs/job_codec.h"
#include "operator/jobs/pod_codec.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"

namespace holdfast::controller {

class JobWindows {
 public:
  void see(const CachedPod& pod, reconciler::LiveTime time);
  void gone(const CachedPod& pod);
  void see(const CachedJob& job, reconciler::LiveTime time);
  void gone(const CachedJob& job);

  // How long the pod, which may be newer than the caches, has been seen to stand still after so
  // many steps. A gap does not end this: while nobody watched the kubelet could go on.
  Duration still_for(const std::string& namespace_, const reconciler::PodView& pod,
                     reconciler::LiveTime time) const;
  // How long it has been seen with its deletion asked for. `window`: how long that may last.
  Duration going_for(const std::string& namespace_, const reconciler::PodView& pod, Duration window,
                     reconciler::LiveTime time) const;
  Duration cancelling_for(const CachedJob& job, Duration window, reconciler::LiveTime time) const;

  // Who waits for the pod, or the job, of this key.
  using Wanted = std::function<WindowKeeper::Wanted(const std::string& key, Duration silent)>;
  struct WantedBy {
    Wanted still, going, cancelling;
  };
  void keep_windows(WindowKeeper& windows, const reconciler::RecordTracker::ClockOf& clock,
                    const WantedBy& wanted);

 private:
  reconciler::RecordTracker still_;
  reconciler::RecordTracker going_;
  reconciler::RecordTracker cancelling_;
};

}  // namespace holdfast::controller
