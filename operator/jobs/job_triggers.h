// From the watches' events to the keys of jobs that must be looked at. It also passes the events on
// to what this process keeps about pods, jobs and nodes: silences, sightings, the census. Loop
// only.
#pragma once

#include <string>

#include "client/controller/work_queue.h"
#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/job_memories.h"
#include "operator/jobs/job_silences.h"
#include "operator/jobs/stray_pods.h"
#include "operator/jobs/telemetry.h"
#include "operator/observe/node_monitor.h"

namespace holdfast::jobs {

// Jobs that wait to start never delay a verdict.
controller::Priority priority_of(const codecs::CachedJob& job);

class JobTriggers {
 public:
  struct Dependencies {
    Loop& loop;
    const kube::Client& client;
    Log log;
    Telemetry& telemetry;
    const JobCaches& caches;
    observe::NodeMonitor& nodes;
    JobSilences& silences;
    JobCensus& census;
    JobMemories& memories;
    Executor& executor;
    StrayPods& strays;
    controller::WorkQueue& queue;
  };
  // Listens to the caches and monitors from now on. All jobs are looked at each `resync`.
  JobTriggers(Dependencies dependencies, Duration resync);

  // The caches are synced: nodes of pods are tracked from now on.
  void begin();
  // Begins the resyncs.
  void resync_later();
  void stop() { deps_.loop.cancel(resync_timer_); }

 private:
  void on_job(const cache::View<codecs::CachedJob>::Change& change);
  void on_pod(const cache::View<codecs::CachedPod>::Change& change);
  void on_node(const std::string& node);
  void on_heartbeat(const codecs::HeartbeatPtr& before, const codecs::HeartbeatPtr& after);
  void look_at_job_of(const codecs::CachedPod& pod,
                      controller::Priority priority = controller::Priority::kFresh);
  void look_for_strays_of(const codecs::CachedJob& job);
  void remember_pod(const codecs::CachedPod& pod, bool is_there);
  void look_at_node(const codecs::CachedPod& pod);
  // The attempt of a pod that has just ended may not count any more.
  void look_for_fenced(const codecs::CachedPod& pod, const codecs::JobPtr& job);
  Time now() const { return deps_.client.server_clock().now(deps_.loop.now()); }

  Dependencies deps_;
  const Duration resync_;
  TimerId resync_timer_ = 0;
  bool started_ = false;
};

}  // namespace holdfast::jobs
