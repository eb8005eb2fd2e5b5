#include "operator/jobs/live_run.h"

#include "reconciler/names.h"
#include "reconciler/run/authorship.h"

namespace holdfast::jobs {

std::int64_t live_key(std::int64_t attempt) { return reconciler::kNoRun - attempt; }

LiveRuns runs_to_read(const codecs::CachedJob& job, const std::vector<std::int64_t>& runs,
                      const JobMemory& memory, std::uint64_t shown, SteadyTime now) {
  LiveRuns chosen;
  if (runs.empty()) {
    const reconciler::LastPod last = reconciler::last_pod(job.job.status);
    LiveRun& one = chosen[reconciler::kNoRun];
    one.pod_name = last.name;
    one.pod_uid = last.uid;
    one.attempt = job.job.status.attempt;
    return chosen;
  }
  const std::set<std::int64_t> wanted(runs.begin(), runs.end());
  std::set<std::int64_t> troubled;
  for (const reconciler::Run& run : job.job.status.runs) {
    if (wanted.count(run.index) == 0) continue;
    const AttemptMemory* const known = memory.find_attempt(run.attempt);
    const bool has_failed =
        known && known->look_failed && now - *known->look_failed < kLookAtSeveral;
    if (has_failed) troubled.insert(run.index);
    LiveRun& one = chosen[run.index];
    one.pod_name = run.pod_name;
    one.pod_uid = run.pod_uid;
    one.attempt = run.attempt;
    // No pod of it comes any more.
    one.may_be_over = (!run.open() || job.job.deleting) && !(known && known->may_still_show(shown));
    if (job.job.spec.heartbeat) one.lease_name = codecs::lease_name(job.job, run.index);
  }
  if (troubled.size() < chosen.size()) {
    for (const std::int64_t index : troubled) chosen.erase(index);
  }
  return chosen;
}

void add_creations_to_read(const codecs::CachedJob& job, const std::vector<std::int64_t>& attempts,
                           const std::set<std::int64_t>& can_come, JobMemory& memory,
                           LiveRuns& chosen) {
  std::set<std::int64_t> looked;
  for (auto& [index, one] : chosen) {
    one.may_not_come = index >= 0 && can_come.count(one.attempt) == 0;
    looked.insert(one.attempt);
  }
  for (const std::int64_t attempt : attempts) {
    if (looked.count(attempt) != 0) continue;
    LiveRun& one = chosen[live_key(attempt)];
    one.pod_name = reconciler::pod_name(job.name, job.uid, attempt);
    one.attempt = attempt;
    one.may_not_come = can_come.count(attempt) == 0;
    memory.attempts.try_emplace(attempt);
  }
}

bool is_of_attempt(const codecs::CachedPod& pod, const codecs::CachedJob& job, const LiveRun& run,
                   const JobMemory& memory) {
  if (pod.names(job.uid) || pod.uid == run.pod_uid) return true;
  const AttemptMemory* const known = memory.find_attempt(run.attempt);
  return run.pod_known && known && pod.uid == known->pod_uid;
}

bool pod_is_known(const LiveRun& run, const JobMemory& memory) {
  const AttemptMemory* const known = memory.find_attempt(run.attempt);
  return known && known->pod_existed;
}

bool record_read(std::int64_t index, LiveRun& one, const codecs::PodPtr& cached,
                 const codecs::CachedJob& job, JobMemory& memory) {
  if (!one.pod && pod_is_known(one, memory) != one.pod_known) return false;
  if (one.pod && cached && cached->uid == one.pod->uid && cached->version > one.pod->version) {
    one.pod = cached;
  }
  AttemptMemory* const known = memory.find_attempt(one.attempt);
  // A stranger's pod of that name is none of the job's.
  const bool is_there = one.pod && one.pod->pod.owner_uid == job.uid;
  if (one.may_not_come && known && !is_there) known->requests.comes_no_more = true;
  // A look may be too short for all runs, and the next one leaves these out.
  if (index >= 0 && one.may_be_over && (!one.pod || one.pod->pod.ended())) {
    memory.runs[index].over = one.attempt;
  }
  return true;
}

}  // namespace holdfast::jobs
