// The live reads of one reconcile of a job before a verdict: the pods of runs and of open
// creations, and the runs' Leases. The rules say what to read, and what a read means. Pure: times
// and versions are parameters.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/codecs/heartbeat_codec.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/job_memory.h"

namespace holdfast::jobs {

// A read that failed is not repeated for this long, if there is something else to read.
inline constexpr std::chrono::seconds kLookAtSeveral{10};

// The result replaces the caches' objects for one reconcile.
struct LiveRun {
  std::string pod_name;
  std::string pod_uid;  // as recorded
  std::int64_t attempt = 0;
  bool pod_known = false;      // this process knew of a pod of the attempt before the read
  bool may_be_over = false;    // the attempt is not open, and no pod of it comes any more
  bool may_not_come = false;   // no request for the pod can succeed any more
  std::string lease_name;      // empty: without heartbeat
  codecs::PodPtr pod;          // null: it does not exist
  codecs::HeartbeatPtr lease;  // null: it does not exist
  bool read = false;           // all of it
};
// By the run's index; kNoRun: the last pod; below it: live_key() of an open creation's attempt.
using LiveRuns = std::map<std::int64_t, LiveRun>;
std::int64_t live_key(std::int64_t attempt);

// What to read of these runs; of none: the pod of the last attempt. A run whose last read has just
// failed is left out if there are others, because they would wait for it. `shown`: the version of
// the cache of pods.
LiveRuns runs_to_read(const codecs::CachedJob& job, const std::vector<std::int64_t>& runs,
                      const JobMemory& memory, std::uint64_t shown, SteadyTime now);

// Adds the pods of these open creations. `can_come`: the attempts for whose pods a request may
// still succeed. A read that begins now says of the others, if they do not exist, that they never
// will. The pods of runs that are read anyway are read once.
void add_creations_to_read(const codecs::CachedJob& job, const std::vector<std::int64_t>& attempts,
                           const std::set<std::int64_t>& can_come, JobMemory& memory,
                           LiveRuns& chosen);

// The pod that a read brought is the attempt's. It names the job, or its UID was the attempt's
// before somebody removed the names.
bool is_of_attempt(const codecs::CachedPod& pod, const codecs::CachedJob& job, const LiveRun& run,
                   const JobMemory& memory);
// This process knows of a pod of the attempt.
bool pod_is_known(const LiveRun& run, const JobMemory& memory);

// Records what the read of `one` said. `cached`: the pod as the watch has it by now, which may be
// newer. False: a creation was answered meanwhile, so that a read without a pod is older than the
// pod.
bool record_read(std::int64_t index, LiveRun& one, const codecs::PodPtr& cached,
                 const codecs::CachedJob& job, JobMemory& memory);

}  // namespace holdfast::jobs
