// The facts from which decide() gets a job's view: what the caches, this process's memory and live
// reads say together. Pure: the caches' objects, the memory and the times are parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/codecs/heartbeat_codec.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/job_memory.h"
#include "operator/jobs/live_run.h"
#include "reconciler/run/creations.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

// When a job is looked at, and how much this process knows by then.
struct Moment {
  SteadyTime steady{};
  Time now{};               // of the API server
  std::uint64_t shown = 0;  // the version of the cache of pods, for the job's namespace
  Duration held{0};         // for how long this replica has had the job's shard
};

// The pods that need a decision, and those of open runs, in the order of their attempts. A live
// read of a pod counts, not the cache. `indexed`: those with the job's key, in any order. `find`:
// by name, in the cache.
std::vector<reconciler::PodView> pods_to_judge(
    const codecs::CachedJob& job, const std::vector<codecs::PodPtr>& indexed,
    const std::function<codecs::PodPtr(const std::string& name)>& find, const LiveRuns& live);

// The pods' names show attempts that the status may not know.
void learn_highest_attempt(const codecs::CachedJob& job, const std::vector<codecs::PodPtr>& pods,
                           JobMemory& memory);

// How long a request for the attempt's pod that another process may have sent can still be applied.
Duration may_come_for(const reconciler::PodlessAttempt& attempt, const Moment& moment);

// The requests for pods that may still be applied, as far as this process knows of them, by
// attempt. `pods`: those that are there.
struct OpenCreations {
  std::vector<reconciler::OpenCreation> all;
  // How many pods that we created the watch should have shown long ago.
  int overdue = 0;
};
OpenCreations open_creations(const codecs::CachedJob& job, JobMemory& memory,
                             const std::vector<reconciler::PodView>& pods, const Moment& moment);

// What the memory knows of this run. `is_read`: its pod was read live for this view.
void observe_memory(const codecs::CachedJob& job, const reconciler::Run& run, bool is_read,
                    JobMemory& memory, reconciler::RunObserved& observed);
// The open run has no pod.
void observe_no_pod(const reconciler::Run& run, AttemptMemory& attempt, const Moment& moment,
                    reconciler::RunObserved& observed);
// None: the last write of the run's Lease was not refused.
std::optional<reconciler::LeaseRefusal> lease_refusal(const JobMemory& memory, std::int64_t run,
                                                      const Moment& moment);

// The pod of the holder to which a Lease was granted last. Null if `pod`, which has the name in
// `granted`, is another one, or null.
codecs::PodPtr granted_pod(const std::string& granted, codecs::PodPtr pod);
inline std::string pod_name_of(const std::string& granted) {
  return granted.substr(0, granted.find('/'));
}
// Something may be left to do about this Lease of a job that has ended: it belongs to one run of
// many. The Lease of a job with one run goes with the job.
bool leads_back(const codecs::CachedHeartbeat& lease);
// The run to which this Lease belonged. The job does not use the Lease any more
// (reconciler::LeaseOver). None: the job uses it, or it is not the job's.
std::optional<std::int64_t> run_of_lease_over(const codecs::CachedJob& job,
                                              const codecs::CachedHeartbeat& lease);

}  // namespace holdfast::jobs
