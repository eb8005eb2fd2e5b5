#include "tests/unit/reconciler/ledger.h"

#include <algorithm>

#include "reconciler/names.h"
#include "reconciler/run/slot.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {

void Ledger::status_written(const StatusWrite& write) {
  const Status& next = write.next;
  if (const std::string why = refused_by_api(write.old, next); !why.empty()) complain(why);
  std::vector<End> ends = ends_of(write);
  for (End& end : ends) check_end(write, end);
  check_budgets(next);
  check_indexes(write, ends);
  check_outcome(write, ends);
  check_left(write);
  check_stopped(write, ends);
  check_starts(write);
}

void Ledger::check_starts(const StatusWrite& write) {
  const Status& next = write.next;
  std::int64_t opened = 0;
  std::int64_t open = 0;
  for (const Run& run : next.runs) {
    if (!run.open()) continue;
    ++open;
    const Run* const was = run_at(write.old, run.index);
    if (was && was->open() && was->attempt == run.attempt) continue;
    ++opened;
    check_start(write, run);
    if (was && write.always_failed) check_old_pod(write, *was);
  }
  check_permit(write, opened);
  if (opened == 0) return;
  if (next.phase != Phase::kRunning) complain("S4: an attempt starts of a job that does not run");
  if (open > write.spec.parallelism) complain("S17: more runs are open than parallelism allows");
  if (next.failures > write.spec.backoff_limit) {
    complain("S8: an attempt starts on an overspent budget");
  }
  if (write.spec.cancel) complain("S12: an attempt of a cancelled job starts");
  if (write.spec.suspend) complain("an attempt of a suspended job starts");
  if (is_true(next, "FailureTarget") || is_true(next, "SuccessCriteriaMet")) {
    complain("S1: an attempt starts of a job whose outcome is decided");
  }
}

void Ledger::check_permit(const StatusWrite& write, std::int64_t opened) {
  const Status& next = write.next;
  const std::int64_t rise = next.attempt - write.old.attempt;
  const bool is_admitted = job_.queue && write.admitted == write.old.attempt;
  const bool gives_back =
      is_admitted && rests(write.spec, next, write.no_pool) && opened == 0 && rise == 1;
  // A user's pod on the next one's name is stepped over.
  if ((rise < opened || rise > opened + 1 || (opened == 0 && rise > 0)) && !gives_back) {
    complain("S3: attempt does not rise by the number of attempts that start");
  }
  if (!job_.queue || rise == 0) return;
  if (!is_admitted && write.old.phase != Phase::kRunning) {
    complain("S19: an attempt starts without a permit");
  }
}

void Ledger::check_start(const StatusWrite& write, const Run& run) {
  const Spec& spec = write.spec;
  if (run.attempt <= write.old.attempt || run.attempt > write.next.attempt) {
    complain("S3: the attempt of a run does not rise");
  }
  if (!runs_.emplace(run.attempt, run.index).second) complain("S3: two runs have one attempt");
  if (run.pod_name != pod_name(job_.name, job_.uid, run.attempt)) complain("S6: another name");
  const Spent& spent = spent_[run.index];
  const auto& limit = spec.backoff_limit_per_index;
  if (spent.disruptions > spec.disruption_limit || (limit && spent.failures > *limit)) {
    complain("S8: an attempt starts on an overspent budget of its run");
  }
}

// podReplacementPolicy Failed: no pod of the run's last attempt may still live, unless its node is
// gone.
void Ledger::check_old_pod(const StatusWrite& write, const Run& old) {
  if (!write.fresh) return;
  for (const PodView& pod : write.pods) {
    const bool lives = !pod.ended() && !(pod.node_name.empty() && pod.deletion);
    // A user may have removed all that shows whose it is.
    const bool is_known = pod.owner_uid == job_.uid || pod.job_uid_label == job_.uid;
    const bool node_gone =
        std::any_of(write.nodes.begin(), write.nodes.end(), [&](const WorldNode& node) {
          return node.name == pod.node_name && write.now - node.missing <= seconds(5);
        });
    if (pod.name != old.pod_name || !made_.count(pod.uid)) continue;
    if (is_known && lives && !node_gone) {
      complain("podReplacementPolicy Failed: the next attempt starts beside the old pod");
    }
  }
}

void Ledger::pod_created(const Job& job, const CreatePod& write, const PodView& pod) {
  made_.insert(pod.uid);
  if (job.spec.pool) complain("S22: a pod of an attempt on a worker");
  if (job.status.attempt < write.attempt)
    complain("S8: a pod exists before its attempt is recorded");
  const auto run = runs_.find(write.attempt);
  if (run == runs_.end() || run->second != write.run) complain("S6: the attempt is another run's");
  if (pod.name != pod_name(job_.name, job_.uid, write.attempt)) complain("S13: another name");
  // A replica may send its creation long after it decided: no shard keeps the replicas of this
  // world apart. So a second pod is no fault of a decision once the attempt has ended.
  const bool is_late = ended_.count(write.attempt) > 0 || job.deleting;
  if (++created_[write.attempt] > 1 && !excused_.count(pod.name) && !is_late) {
    complain("S6: a second pod of one attempt");
  }
}

void Ledger::pod_touched(const char* what, const Job& job, const PodView& pod) {
  const std::string text = std::string(what) + " " + pod.name;
  const bool orphaned = pod.owner_uid.empty() && std::string(what) == "releases";
  if (pod.owner_uid != job.uid && !made_.count(pod.uid) && !orphaned) {
    complain("S6, S10: " + text + " of another owner");
  }
  const Run* const run = job.status.run_of_pod(pod.name);
  // Of two pods under one name, after a user removed the first, each replica may know its own.
  const bool is_the_attempts = run && run->open() && made_.count(pod.uid) &&
                               !excused_.count(pod.name) &&
                               (run->pod_uid.empty() || run->pod_uid == pod.uid);
  if (!job.deleting && is_the_attempts) {
    complain("S2: " + text + " before the end of its attempt is recorded");
  }
}

void Ledger::slot_ended(const holdfast::Answer& answer) {
  Run run;
  run.attempt = answer.id.attempt;
  SlotView slot;
  slot.at = AtPlace::kEnded;
  slot.exit_code = answer.exit_code;
  slot.result = answer.result;
  ends_[slot_key(answer.id.attempt)] = slot_as_pod(job_, run, slot);
}

const PodView* Ledger::find_end(const std::string& place) const {
  const auto found = ends_.find(place);
  return found == ends_.end() ? nullptr : &found->second;
}

}  // namespace holdfast::reconciler::testing
