// The live reads that a verdict on a job needs. They read the pods of its runs and of open
// creations, their nodes and Leases, and then the job itself. All runs are read side by side,
// within a limit. The rules are in live_run.h. Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <vector>

#include "client/controller/fair_share.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/jobs/held_shards.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/live_run.h"
#include "operator/observe/node_monitor.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class LiveReads {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    const JobCaches& caches;
    observe::NodeMonitor& nodes;
    const HeldShards& shards;
    controller::FairShare& channels;  // see Channels
  };
  explicit LiveReads(const Dependencies& dependencies) : deps_(dependencies) {}

  // Reads what the decision wants confirmed. All that could be read goes into `live`, also if a
  // failure is returned: the next decision acts on the runs that were read. The caller keeps the
  // arguments alive. kConflict: the job has changed since it was cached, so all reads are void.
  Task<Result<>> confirm(const codecs::CachedJob& job, const reconciler::Decision& decision,
                         JobMemory& memory, LiveRuns& live);

 private:
  struct Limits {
    SteadyTime begin_by;  // no read of a run begins later
    SteadyTime by;        // and none lasts longer
  };
  Task<Result<>> look(const codecs::CachedJob& job, const reconciler::Decision& decision,
                      JobMemory& memory, LiveRuns& live);
  LiveRuns choose(const codecs::CachedJob& job, const reconciler::Decision& decision,
                  JobMemory& memory);
  // Fails only if no run was read. `failure` is one of those of single runs.
  Task<Result<>> read_runs(const codecs::CachedJob& job, Limits limits, JobMemory& memory,
                           LiveRuns& runs, std::optional<Error>& failure);
  Task<Result<>> read_run(const codecs::CachedJob& job, const JobMemory& memory, SteadyTime by,
                          LiveRun& run);
  Task<Result<>> read_job(const codecs::CachedJob& job, JobMemory& memory, SteadyTime by);

  Dependencies deps_;
};

}  // namespace holdfast::jobs
