// Makes the view of a job for decide(). It asks the caches, the monitors and the other controllers,
// and joins their answers by the rules of job_facts.h. Loop only.
#pragma once

#include "core/loop.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/held_shards.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_facts.h"
#include "operator/jobs/job_neighbours.h"
#include "operator/jobs/job_silences.h"
#include "operator/jobs/lost_holders.h"
#include "operator/jobs/pod_creations.h"
#include "operator/membership/membership.h"
#include "operator/observe/node_monitor.h"

namespace holdfast::jobs {

class JobObserver {
 public:
  struct Dependencies {
    Random& random;
    const JobCaches& caches;
    const membership::Membership& membership;
    observe::NodeMonitor& nodes;
    const JobSilences& silences;
    const HeldShards& shards;
    const PodCreations& creations;
    const JobNeighbours& neighbours;
    Executor& executor;
  };
  JobObserver(Loop& loop, const kube::Client& client, const Dependencies& dependencies)
      : deps_(dependencies), lost_holders_(loop, client, dependencies.caches) {}

  // `live`: what this reconcile has read live; it replaces what the caches have. `asked`: when it
  // asked for that. The memory learns from the view.
  reconciler::JobView view(const codecs::CachedJob& job, JobMemory& memory, const LiveRuns& live,
                           const observe::LookTimes& asked);
  // The next live reads are asked for now.
  observe::LookTimes look_times(const codecs::CachedJob& job, Time now) const;

 private:
  // What all steps of one view have in common.
  struct Sight {
    const codecs::CachedJob& job;
    JobMemory& memory;
    const LiveRuns& live;
    const observe::LookTimes& asked;
    const Moment moment;
    reconciler::JobView& view;

    // Null: it was not read live.
    const LiveRun* read(const reconciler::Run& run) const;
  };
  void observe_shard(const codecs::CachedJob& job, reconciler::JobView& view) const;
  std::vector<codecs::PodPtr> indexed_pods(const codecs::CachedJob& job, bool with_settled) const;
  void update_memory(const Sight& sight) const;
  void observe(const Sight& sight);
  // Of the pods that have not ended.
  void observe_pods(const Sight& sight);
  // The Lease, then the pod, of the run at this position in status.runs.
  void observe_lease(const Sight& sight, std::size_t position);
  void observe_pod(const Sight& sight, std::size_t position, const reconciler::PodView* pod);
  void observe_leases_over(const Sight& sight);
  codecs::PodPtr granted_pod_of(const codecs::CachedHeartbeat& lease, const LiveRun* read) const;

  Dependencies deps_;
  LostHolders lost_holders_;
};

}  // namespace holdfast::jobs
