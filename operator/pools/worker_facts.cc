#include "operator/pools/worker_facts.h"

#include <algorithm>

#include "reconciler/run/pod_times.h"

namespace holdfast::pools {

reconciler::WorkerFacts worker_facts(const Worker& worker, const CachedPool* pool,
                                     reconciler::PodIs pod) {
  reconciler::WorkerFacts facts;
  facts.pod = pod;
  facts.out_of_memory = worker.pod && worker.pod->worker.out_of_memory;
  facts.has_pool = pool && !pool->deleting && (!worker.pod || worker.pod->owner_uid == pool->uid);
  facts.has_work = static_cast<bool>(worker.work);
  facts.duration = worker.duration();
  facts.has_lease = static_cast<bool>(worker.lease);
  facts.is_needed = facts.has_lease;
  if (!worker.lease) return facts;
  const CachedWorkerLease& lease = *worker.lease.get();
  facts.is = lease.refused.empty() ? lease.is() : reconciler::WorkerIs::kLive;
  // What is not understood matters no more once the worker is revoked.
  const bool is_live = facts.is == reconciler::WorkerIs::kLive;
  const bool work_is_clean =
      !worker.work || (worker.work->refused.empty() && worker.work->error.empty());
  facts.is_ours = lease.refused.empty() && (!is_live || (lease.error.empty() && work_is_clean));
  facts.renewed = lease.renewed.has_value();
  facts.is_marked = !lease.report.life.empty();
  return facts;
}

reconciler::RecordSays record_says(const reconciler::Job& job, const AttemptId& id,
                                   const std::string& lease_uid) {
  using reconciler::RecordSays;
  if (job.deleting) return RecordSays::kOver;
  const reconciler::Status& status = job.status;
  if (id.attempt > status.attempt) return RecordSays::kUnknown;
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const auto& one) { return one.index == id.run; });
  const bool is_open = run != status.runs.end() && run->attempt == id.attempt && run->open() &&
                       run->worker_uid == lease_uid && !is_terminal(status.phase);
  return is_open ? RecordSays::kRun : RecordSays::kOver;
}

reconciler::PoolWorker planned_worker(const Worker& worker, const WorkerSlots& slots,
                                      SteadyTime steady, Time now) {
  reconciler::PoolWorker seen;
  seen.pod = worker.pod->worker;
  if (worker.pod->placement == reconciler::Placement::kBound) {
    seen.bound = reconciler::placed_since(seen.pod.created, worker.pod->placed,
                                          worker.pod_history.sightings, now);
  }
  seen.state = worker.state();
  seen.pod.deleting = seen.pod.deleting || worker.removal.accepted;
  seen.stays = worker.removal.failures > 0;
  seen.marking = worker.duty.marking;
  if (worker.lease) {
    seen.served = !worker.lease->report.life.empty();
    seen.attempts = slots.attempts();
    seen.kept = slots.is_kept();
    const bool is_known = worker.is_readable() || (!worker.work && worker.lease->error.empty());
    if (!is_known) seen.attempts = std::max<std::int64_t>(seen.attempts, 1);
  }
  seen.idle_for = worker.idle_for(steady, now);
  return seen;
}

bool may_take(const Worker& worker, const CachedPool* pool) {
  return worker.is_readable() && worker.pod && worker.state() == reconciler::WorkerState::kLive &&
         !worker.pod->worker.deleting && !worker.removal.accepted && !worker.duty.drains && pool &&
         worker.pod->owner_uid == pool->uid;
}

}  // namespace holdfast::pools
