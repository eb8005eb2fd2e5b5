#include "tests/unit/reconciler/ledger.h"

#include "reconciler/names.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {

void Ledger::status_written(const StatusWrite& write) {
  const Status& old = write.old;
  const Status& next = write.next;
  if (const std::string why = refused_by_api(old, next); !why.empty()) complain(why);
  const bool ended = next.history != old.history;
  if (ended) check_end(write);
  if (!ended && next.phase != old.phase && old.phase == Phase::kRunning &&
      !next.condition("Failed")) {
    complain("S2: an attempt ends that is not in history");
  }
  if (next.attempt != old.attempt) check_start(write);
  if (next.failures != failures_) complain("S8: failures are not the ended attempts'");
  if (next.disruptions != disruptions_) complain("S8: disruptions are not the ended attempts'");
  if (next.phase == Phase::kSucceeded && old.phase != next.phase) {
    if (!ended || next.history.back().outcome != Outcome::kSucceeded) {
      complain("S2: Succeeded without an attempt that did");
    }
    if (!next.condition("Complete") || !next.condition("Complete")->status) {
      complain("Succeeded without its condition");
    }
  }
  if (next.phase == Phase::kFailed && !next.condition("Failed")) {
    complain("Failed without its condition");
  }
}

void Ledger::check_end(const StatusWrite& write) {
  const Status& old = write.old;
  const HistoryEntry& entry = write.next.history.back();
  if (old.phase != Phase::kRunning || entry.attempt != old.attempt) {
    complain("S2: an outcome that is not the current attempt's");
  }
  if (!ended_.insert(entry.attempt).second) complain("S8: an attempt ends twice");
  const Budget budget = budget_of(entry.outcome);
  if (budget == Budget::kFailures) ++failures_;
  if (budget == Budget::kDisruptions) ++disruptions_;
  const bool told = entry.outcome == Outcome::kSucceeded || entry.outcome == Outcome::kFailed;
  if (told && !made_.count(entry.pod_uid))
    complain("S18: an outcome of a pod that it did not make");
  const auto truth = ends_.find(entry.pod_uid);
  const bool succeeded = truth != ends_.end() && truth->second == PodPhase::kSucceeded;
  if (entry.outcome == Outcome::kSucceeded && !succeeded) {
    complain("S2: a success that its pod did not tell");
  }
  if (entry.outcome == Outcome::kFailed &&
      (truth == ends_.end() || truth->second != PodPhase::kFailed)) {
    complain("S2: a failure that its pod did not tell");
  }
  if (succeeded && entry.outcome != Outcome::kSucceeded && write.fresh) {
    for (const PodView& pod : write.pods) {
      if (pod.uid == entry.pod_uid && pod.owner_uid == job_.uid) {
        complain("S2: a success is lost");
      }
    }
  }
  // A pod that is gated or unschedulable waits without limit: the user has set none.
  if (entry.outcome == Outcome::kStartTimeout && !write.spec.schedule_deadline) {
    for (const PodView& pod : write.pods) {
      if (pod.uid == entry.pod_uid && pod.placement() != Placement::kBound) {
        complain("an attempt times out though its pod has no node");
      }
    }
  }
  // Observers see a renewal at most 5 s late.
  if (write.fresh && entry.reason == Reason::kNodeSilent &&
      write.node_silent + seconds(5) < write.spec.lost_after) {
    complain("an attempt is lost though its node renewed in time");
  }
}

void Ledger::check_start(const StatusWrite& write) {
  const Status& next = write.next;
  // A user's pod on the next one's name is stepped over.
  const std::int64_t rise = next.attempt - write.old.attempt;
  if (rise < 1 || rise > 2) complain("S3: attempt does not rise by one");
  if (next.phase != Phase::kRunning) complain("S3: attempt rises without an attempt");
  if (next.run().pod_name != pod_name(job_.name, job_.uid, next.attempt))
    complain("S6: another name");
  if (write.old.phase == Phase::kRunning && next.history == write.old.history) {
    complain("S8: an attempt is replaced uncounted");
  }
  if (next.failures > write.spec.backoff_limit || next.disruptions > write.spec.disruption_limit) {
    complain("S8: an attempt starts on an overspent budget");
  }
  if (write.spec.cancel) complain("S12: an attempt of a cancelled job starts");
  if (write.spec.suspend) complain("an attempt of a suspended job starts");
  if (write.overlap_allowed || !write.fresh) return;
  for (const PodView& pod : write.pods) {
    const bool lives = !pod.ended() && !(pod.node_name.empty() && pod.deletion);
    if (pod.name == write.old.run().pod_name && made_.count(pod.uid) && lives) {
      complain("podReplacementPolicy Failed: the next attempt starts beside the old pod");
    }
  }
}

void Ledger::pod_created(const Status& status, std::int64_t attempt, const PodView& pod) {
  const std::string& name = pod.name;
  made_.insert(pod.uid);
  if (status.attempt < attempt) complain("S8: a pod exists before its attempt is recorded");
  if (name != pod_name(job_.name, job_.uid, attempt)) complain("S13: another name");
  if (++created_[attempt] > 1 && !excused_.count(name)) {
    complain("S6: a second pod of one attempt");
  }
}

void Ledger::pod_touched(const char* what, const Job& job, const PodView& pod) {
  const std::string text = std::string(what) + " " + pod.name;
  const bool orphaned = pod.owner_uid.empty() && std::string(what) == "releases";
  if (pod.owner_uid != job.uid && !made_.count(pod.uid) && !orphaned) {
    complain("S6, S10: " + text + " of another owner");
  }
  if (!job.deleting && job.status.phase == Phase::kRunning && made_.count(pod.uid) &&
      (job.status.run().pod_uid.empty() || job.status.run().pod_uid == pod.uid) &&
      pod.name == job.status.run().pod_name) {
    complain("S2: " + text + " before the end of its attempt is recorded");
  }
}

void Ledger::pod_ended(const PodView& pod) { ends_[pod.uid] = pod.phase; }

}  // namespace holdfast::reconciler::testing
