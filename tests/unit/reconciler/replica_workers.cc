// What a replica of the random world knows of warm workers, as operator/pools does: slots that are
// free, places of attempts, and what the work Leases have to say next.
#include <algorithm>

#include "reconciler/run/slot.h"
#include "tests/unit/reconciler/replica.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

SteadyTime steady(Time time) { return SteadyTime(time.time_since_epoch()); }

bool is_placed(const std::vector<OtherPlace>& others, const AttemptId& id) {
  return std::any_of(others.begin(), others.end(),
                     [&](const OtherPlace& other) { return other.id == id; });
}

// `job`: as the replica has it; null: it is gone.
RecordSays record_of(const Job* job, const AttemptId& id) {
  if (!job || job->uid != id.job_uid) return RecordSays::kOver;
  const Run* const run = run_at(job->status, id.run);
  if (run && run->attempt == id.attempt && run->open()) return RecordSays::kRun;
  return job->status.attempt < id.attempt ? RecordSays::kUnknown : RecordSays::kOver;
}

WorkerView view_of(const WorkerLeases& leases, bool read_after) {
  return {leases.is, leases.report,       leases.work, leases.work_uid, read_after,
          "",        leases.out_of_memory};
}

}  // namespace

void Replica::sync_workers(bool fully) {
  if (!world_.workers().exists()) return;
  const std::size_t end = world_.workers().log().size();
  const std::size_t steps = fully ? end : static_cast<std::size_t>(rng_.below(6));
  const std::size_t next = std::min(end - 1, leases_seen_ + steps);
  news_ = news_ || next != leases_seen_;
  leases_seen_ = next;
  leases_version_ = std::max(leases_version_, world_.workers().log()[next]->version);
  if (next == end - 1 && (fully || rng_.percent(50))) leases_version_ = world_.version();
  news_ = news_ || no_pool_ == world_.workers().pool_exists();
  no_pool_ = !world_.workers().pool_exists();
}

void Replica::observe_pool(JobView& view) const {
  if (!view.job.spec.pool) return;
  PoolView& pool = view.observed.pool;
  pool.no_pool = no_pool_;
  if (awaits_since_) pool.wait = {world_.now() - *awaits_since_, world_.now() - *awaits_since_};
  if (no_pool_) return;
  const auto& runs = view.job.status.runs;
  const bool wants_empty = std::any_of(runs.begin(), runs.end(),
                                       [](const Run& run) { return run.alone && !run.open(); });
  for (const WorkerLeases& leases : world_.workers().log()[leases_seen_]->leases) {
    const bool drains = leases.report.draining || !leases.work || leases.work->draining;
    if (leases.is != WorkerIs::kLive || drains) continue;
    std::vector<AttemptId> used;
    for (const WorkEntry& entry : leases.work->entries) used.push_back(entry.id);
    for (const OtherPlace& other : world_.workers().log()[leases_seen_]->others) {
      const bool is_here = other.worker_uid == leases.uid;
      if (is_here && std::find(used.begin(), used.end(), other.id) == used.end()) {
        used.push_back(other.id);
      }
    }
    for (const Run& run : view.job.status.runs) {
      const AttemptId id{view.job.uid, run.index, run.attempt};
      const bool is_here = run.open() && run.worker_uid == leases.uid;
      if (is_here && std::find(used.begin(), used.end(), id) == used.end()) used.push_back(id);
    }
    if (used.empty() && wants_empty) {
      pool.empty.push_back({leases.name, leases.uid, kWorkerLease});
      continue;
    }
    for (std::size_t slot = used.size(); slot < Workers::kSlots; ++slot) {
      pool.offers.push_back({leases.name, leases.uid, kWorkerLease});
    }
  }
}

SlotView Replica::slot_of(const JobView& view, const Run& run) {
  const AttemptId id{view.job.uid, run.index, run.attempt};
  const bool is_new = leases_version_ >= view.job.version;
  SlotView slot;
  const auto& all = world_.workers().log()[leases_seen_]->leases;
  const auto found = std::find_if(all.begin(), all.end(), [&](const WorkerLeases& leases) {
    return leases.uid == run.worker_uid;
  });
  if (found == all.end()) {
    // Its agent's own deadline comes first.
    const Duration live = clock_.read(steady(world_.now()));
    if (!is_new) return slot;
    const Duration since = lost_workers_.try_emplace(run.worker_uid, live).first->second;
    if (live - std::max(since, clock_.epoch()) < kWorkerLease) return slot;
    slot.at = AtPlace::kLost;
    slot.left = true;
    return slot;
  }
  const WorkerView worker = view_of(*found, is_new);
  const holdfast::Answer* answer = nullptr;
  slot.at = at_place(id, worker, &answer);
  slot.is_known = worker.is == WorkerIs::kLive;
  slot.left = has_left(id, worker);
  slot.out_of_memory = slot.at == AtPlace::kLost && worker.out_of_memory;
  slot.beside_others = slot.out_of_memory && attempts_at_end(worker) > 1;
  if (!answer) return slot;
  slot.exit_code = answer->exit_code;
  slot.result = answer->result;
  slot.progress = answer->message;
  slot.checkpoint = answer->checkpoint;
  slot.stalled_for = seconds(answer->age_seconds) + (world_.now() - found->changed);
  return slot;
}

void Replica::show_slots(JobView& view) {
  std::erase_if(view.pods, [](const PodView& pod) { return pod.slot; });
  for (std::size_t position = 0; position < view.runs.size(); ++position) {
    const Run& run = view.job.status.runs[position];
    if (!run.at_worker()) continue;
    view.runs[position].slot = slot_of(view, run);
    const SlotView& slot = *view.runs[position].slot;
    if (!run.open() && slot.left) continue;
    view.pods.push_back(slot_as_pod(view.job, run, slot));
  }
}

void Replica::ask_slots(const JobView& seen, std::int64_t runs) {
  if (!seen.job.spec.pool) return;
  if (runs == 0) awaits_since_.reset();
  if (runs > 0 && !awaits_since_) awaits_since_ = world_.now();
}

bool Replica::serve_workers() {
  if (paused_ || world_.outage() || !world_.workers().exists()) return false;
  const auto& job = world_.job_log()[job_seen_];
  const std::vector<OtherPlace>& others = world_.workers().log()[leases_seen_]->others;
  bool wrote = false;
  for (const WorkerLeases& leases : world_.workers().log()[leases_seen_]->leases) {
    if (leases.is == WorkerIs::kCutOff || !leases.work || (faults_ && rng_.percent(10))) continue;
    std::vector<Placed> placed;
    for (const Run& run : job ? job->status.runs : std::vector<Run>()) {
      if (!run.open() || run.worker_uid != leases.uid) continue;
      placed.push_back({{job->uid, run.index, run.attempt}, job->name});
    }
    for (const OtherPlace& other : others) {
      if (other.worker_uid == leases.uid) placed.push_back({other.id, "other"});
    }
    const auto next = next_work(*leases.work, leases.report, placed, [&](const AttemptId& id) {
      if (!is_other(id)) return record_of(job.get(), id);
      return is_placed(others, id) ? RecordSays::kRun : RecordSays::kOver;
    });
    if (next) wrote = world_.workers().put_work(leases.uid, leases.work_version, *next) || wrote;
  }
  return wrote;
}

}  // namespace holdfast::reconciler::testing
