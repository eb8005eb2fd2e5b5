// How long pods and jobs have been in a state that only time ends, as the caches show it. Such are
// a pod whose next container does not start, a deleted pod, and a job that is being cancelled. Kept
// for the jobs of all shards, so that a new holder has watched from the start. No I/O: live times
// of the pods' watch are parameters. Loop only.
#pragma once

#include <string>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"

namespace holdfast::jobs {

// The job's end is known, and it waits for its pods to end.
bool is_stopping(const reconciler::Status& status);

class JobWindows {
 public:
  void see(const codecs::CachedPod& pod, reconciler::LiveTime time);
  void gone(const codecs::CachedPod& pod);
  void see(const codecs::CachedJob& job, reconciler::LiveTime time);
  void gone(const codecs::CachedJob& job);

  // How long the pod, which may be newer than the caches, has made no further step. A gap in the
  // watch does not end this, because the kubelet could go on meanwhile.
  Duration still_for(const std::string& namespace_, const reconciler::PodView& pod,
                     reconciler::LiveTime time) const;
  // How long the pod has been deleted but present. `window`: how long that may last.
  Duration going_for(const std::string& namespace_, const reconciler::PodView& pod, Duration window,
                     reconciler::LiveTime time) const;
  Duration cancelling_for(const codecs::CachedJob& job, Duration window,
                          reconciler::LiveTime time) const;

  // Which shards wait for the pod or the job of this key.
  using Wanted =
      std::function<observe::WindowKeeper::Wanted(const std::string& key, Duration silent)>;
  struct WantedBy {
    Wanted still, going, cancelling;
  };
  void keep_windows(observe::WindowKeeper& windows, const reconciler::RecordTracker::ClockOf& clock,
                    const WantedBy& wanted);

 private:
  reconciler::RecordTracker still_;
  reconciler::RecordTracker going_;
  reconciler::RecordTracker cancelling_;
};

}  // namespace holdfast::jobs
