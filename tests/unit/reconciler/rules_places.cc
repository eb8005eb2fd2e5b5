// The rules on attempts whose place is a slot of a warm worker (docs/internals/workers.md), for any
// view.
#include <algorithm>
#include <map>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/rules_writes.h"

namespace holdfast::reconciler::testing {
namespace {

AtPlace at_of(const RunView& seen) { return seen.slot ? seen.slot->at : AtPlace::kUnknown; }

// Nothing of the run's last attempt runs at its place.
bool has_left(const Run& run, const RunView& seen) {
  if (!run.at_worker()) return true;
  return run.open() ? is_empty(at_of(seen)) : seen.slot && seen.slot->left;
}

struct PodOfWrite {
  const std::string* operator()(const DeletePod& write) const { return &write.uid; }
  const std::string* operator()(const ReleasePod& write) const { return &write.uid; }
  const std::string* operator()(const RelabelPod& write) const { return &write.uid; }
  template <class Other>
  const std::string* operator()(const Other&) const {
    return nullptr;
  }
};

std::string broken_pods(const JobView& view, const Decision& decision, const Status& next) {
  for (const Write& write : decision.writes) {
    const std::string* const uid = std::visit(PodOfWrite{}, write);
    const bool is_slot = uid && std::any_of(view.pods.begin(), view.pods.end(),
                                            [&](auto& pod) { return pod.slot && pod.uid == *uid; });
    if (is_slot) return "S22: a write on a slot, as if it were a pod";
    const auto* const create = std::get_if<CreatePod>(&write);
    const Run* const run = create ? run_at(next, create->run) : nullptr;
    if (run && run->at_worker()) return "S22: a pod of an attempt on a worker";
  }
  return "";
}

// What the end of an attempt says is what its worker has answered, or its silence.
std::string broken_end(const SlotView& slot, Outcome outcome, bool job_ends) {
  const bool succeeded = slot.at == AtPlace::kEnded && slot.exit_code == 0;
  const bool killed = slot.at == AtPlace::kLost && slot.out_of_memory && !slot.beside_others;
  const bool failed = killed || (slot.at == AtPlace::kEnded && slot.exit_code != 0);
  if (job_ends && outcome == Outcome::kCancelled) return "";
  if (succeeded != (outcome == Outcome::kSucceeded)) {
    return "S2: a success is lost, or is not the worker's";
  }
  const bool is_deferred = outcome == Outcome::kDeferred;
  if (failed != (outcome == Outcome::kFailed || is_deferred)) {
    return "S2: a failure is lost, or is not the worker's";
  }
  if ((slot.at == AtPlace::kReturned) != (outcome == Outcome::kHandedBack)) {
    return "an attempt counts as handed back, and was not, or was and does not";
  }
  const bool is_lost = (slot.at == AtPlace::kLost && !killed) || slot.at == AtPlace::kStopped;
  return is_lost == (outcome == Outcome::kLost) ? "" : "an attempt is lost without a cause";
}

std::string broken_ends(const JobView& view, const WriteStatus& write) {
  const bool job_ends =
      is_true(write.status, "FailureTarget") || is_true(write.status, "SuccessCriteriaMet");
  const auto& runs = view.job.status.runs;
  for (const Ended& one : write.ended) {
    const Run* const run = one.outcome ? run_at(view.job.status, one.index) : nullptr;
    if (!run || !run->at_worker()) continue;
    // Of two runs with one attempt, by an edit of the status, one has no place.
    const auto same = [&](const Run& other) { return other.attempt == run->attempt; };
    if (std::count_if(runs.begin(), runs.end(), same) > 1) continue;
    const RunView& seen = view.seen(static_cast<std::size_t>(run - runs.data()));
    const SlotView slot = seen.slot.value_or(SlotView());
    const std::string why =
        broken_end(slot, *one.outcome, job_ends || !write.status.stages.empty());
    if (!why.empty()) return why;
    const Run* const now = run_at(write.status, one.index);
    if (now && !slot.checkpoint.empty() && now->checkpoint != slot.checkpoint) {
      return "the last checkpoint of an attempt is not on record";
    }
  }
  return "";
}

// The place of a run that has opened was offered, and the last one is empty.
std::string broken_starts(const JobView& view, const Status& next) {
  const auto& runs = view.job.status.runs;
  std::map<std::string, std::int64_t> free;
  for (const PoolView::Worker& worker : view.observed.pool.offers) ++free[worker.uid];
  std::map<std::string, std::int64_t> empty;
  for (const PoolView::Worker& worker : view.observed.pool.empty) ++empty[worker.uid];
  for (const Run& run : next.runs) {
    const Run* const was = run_at(view.job.status, run.index);
    if (was && was->alone && !run.alone) return "a run forgets that it is alone";
    if (run.alone && (!was || !was->alone)) {
      const RunView seen = was ? view.seen(static_cast<std::size_t>(was - runs.data())) : RunView();
      if (!seen.slot || !seen.slot->beside_others) return "a run is alone without a cause";
    }
    if (was && was->attempt == run.attempt) {
      if (was->worker_uid != run.worker_uid || was->worker_name != run.worker_name ||
          was->worker_lease_duration != run.worker_lease_duration) {
        return "S22: an attempt gets another place";
      }
      continue;
    }
    if (run.at_worker() != view.job.spec.pool.has_value()) return "S22: the wrong kind of place";
    if (run.at_worker() && --(run.alone ? empty : free)[run.worker_uid] < 0) {
      return "S22: a slot that was not offered";
    }
    if (was && !has_left(*was, view.seen(static_cast<std::size_t>(was - runs.data())))) {
      return "S22: the next attempt starts before the last place is empty";
    }
  }
  return "";
}

// The phase says that nothing of the job runs.
std::string broken_end_of_job(const JobView& view, const Status& next) {
  const Status& old = view.job.status;
  if (!is_terminal(next.phase) || is_terminal(old.phase)) return "";
  for (std::size_t position = 0; position < old.runs.size(); ++position) {
    if (!has_left(old.runs[position], view.seen(position))) {
      return std::string(to_string(next.phase)) + " before the place of each run is empty";
    }
  }
  return "";
}

}  // namespace

std::string broken_places(const JobView& view, const Decision& decision, const Status& next) {
  if (const std::string why = broken_pods(view, decision, next); !why.empty()) return why;
  if (decision.awaits_slots + decision.awaits_empty > 0 &&
      (!view.job.spec.pool || view.job.deleting)) {
    return "asks for a slot, and has no use for one";
  }
  if (std::max(decision.awaits_slots, decision.awaits_empty) > view.job.spec.parallelism)
    return "asks for too many slots";
  for (const Write& write : decision.writes) {
    const auto* const status = std::get_if<WriteStatus>(&write);
    if (!status) continue;
    if (const std::string why = broken_ends(view, *status); !why.empty()) return why;
  }
  if (const std::string why = broken_end_of_job(view, next); !why.empty()) return why;
  // The runs and the pool of the next stage are others.
  return next.stage == view.job.status.stage ? broken_starts(view, next) : "";
}

}  // namespace holdfast::reconciler::testing
