// The ledger's rules on attempts that end and runs that are over. What ended is read from the
// difference of two statuses. No job of the random world has so many runs that one write of
// history cannot record all its ends.
#include <algorithm>

#include "reconciler/api.h"
#include "reconciler/names.h"
#include "reconciler/run/slot.h"
#include "tests/unit/reconciler/ledger.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

bool contains(const std::vector<HistoryEntry>& history, const HistoryEntry& entry) {
  return std::find(history.begin(), history.end(), entry) != history.end();
}

bool succeeded(const PodView* end) { return end && end->phase == PodPhase::kSucceeded; }
bool failed(const PodView* end) { return end && end->phase == PodPhase::kFailed; }

// batch/v1's rule. A count above the number of the rule's indexes means all of them.
bool is_met(const SuccessRule& rule, const IndexSet& completed) {
  if (!rule.indexes) return rule.count && completed.size() >= *rule.count;
  const std::int64_t all = rule.indexes->size();
  return completed.common(*rule.indexes) >= std::min(all, rule.count.value_or(all));
}

bool has_enough(const Spec& spec, const IndexSet& completed) {
  if (completed.size() >= spec.wanted()) return true;
  return std::any_of(spec.success_policy.begin(), spec.success_policy.end(),
                     [&](const SuccessRule& rule) { return is_met(rule, completed); });
}

}  // namespace

// The runs whose open attempt does not go on.
std::vector<Ledger::End> Ledger::ends_of(const StatusWrite& write) {
  std::vector<End> ends;
  for (const Run& was : write.old.runs) {
    const Run* const now = run_at(write.next, was.index);
    if (!was.open() || (now && now->open() && now->attempt == was.attempt)) continue;
    ends.push_back({was, now});
  }
  for (const HistoryEntry& entry : write.next.history) {
    if (contains(write.old.history, entry)) continue;
    const auto end = std::find_if(ends.begin(), ends.end(), [&](const End& one) {
      return one.was.index == entry.index && one.was.attempt == entry.attempt;
    });
    if (end == ends.end()) {
      complain("S2: an outcome that is not an open attempt's");
    } else {
      end->entry = &entry;
    }
  }
  return ends;
}

namespace {

// The kernel has killed the attempt's worker for its memory. The worker says nothing of it, and may
// have begun it unseen, or have seen another end of it.
bool is_by_kernel(const HistoryEntry& entry) {
  return entry.reason == Reason::kOOMKilled && !entry.worker_name.empty();
}

PodView killed_slot() {
  PodView pod;
  pod.slot = true;
  pod.phase = PodPhase::kFailed;
  ContainerView container;
  container.name = kSlotContainer;
  container.worker = true;
  container.terminated.emplace().exit_code = 137;
  pod.containers.push_back(container);
  return pod;
}

}  // namespace

void Ledger::check_end(const StatusWrite& write, End& end) {
  if (!ended_.insert(end.was.attempt).second) complain("S8: an attempt ends twice");
  if (!end.entry) {
    // Deferrals of one write share an entry.
    const auto& history = write.next.history;
    const bool shares = std::any_of(history.begin(), history.end(), [](const auto& entry) {
      return entry.outcome == Outcome::kDeferred && entry.count > 1;
    });
    if (!shares) complain("S2: an attempt ends that is not in history");
    return;
  }
  const HistoryEntry& entry = *end.entry;
  const std::string place = end.was.at_worker() ? slot_key(end.was.attempt) : entry.pod_uid;
  check_history_entry(write, entry, place);
  const PodView* const truth = find_end(place);
  // A verdict without an exit code is not the pod's own: no rule judges that.
  if (is_by_kernel(entry)) {
    end.action = policy_on(write.spec, killed_slot());
  } else if (entry.exit_code && failed(truth)) {
    end.action = policy_on(write.spec, *truth);
  }
  const Budget budget =
      end.action == PolicyAction::kIgnore ? Budget::kNone : budget_of(entry.outcome);
  if ((end.action == PolicyAction::kDefer) != (entry.outcome == Outcome::kDeferred)) {
    complain("an end is deferred without a rule that says so, or is not with one");
  }
  if (entry.outcome == Outcome::kHandedBack && budget != Budget::kNone) {
    complain("an attempt that was handed back spends a budget");
  }
  Spent& spent = spent_[entry.index];
  if (budget == Budget::kFailures) ++spent.failures;
  if (budget == Budget::kDisruptions) ++spent.disruptions;
  check_run_after(write, end);
}

// What the write says of the attempt's end, beside what its pod says.
void Ledger::check_history_entry(const StatusWrite& write, const HistoryEntry& entry,
                                 const std::string& place) {
  const PodView* const truth = find_end(place);
  const bool by_kernel = is_by_kernel(entry);
  const bool is_pods_own =
      !by_kernel && (entry.outcome == Outcome::kSucceeded || entry.outcome == Outcome::kFailed);
  if (is_pods_own && !made_.count(place)) {
    complain("S18: an outcome of a pod that it did not make");
  }
  if (entry.outcome == Outcome::kSucceeded && !succeeded(truth)) {
    complain("S2: a success that its pod did not tell");
  }
  if (entry.outcome == Outcome::kFailed && !by_kernel && !failed(truth)) {
    complain("S2: a failure that its pod did not tell");
  }
  const bool is_lost = succeeded(truth) && entry.outcome != Outcome::kSucceeded;
  for (const PodView& pod : write.pods) {
    if (pod.uid != entry.pod_uid) continue;
    if (is_lost && write.fresh && pod.owner_uid == job_.uid) complain("S2: a success is lost");
    const Run* const was = run_at(write.old, entry.index);
    const bool has_run =
        was && was->start_time && std::chrono::floor<seconds>(*was->start_time) == *was->start_time;
    if (entry.outcome == Outcome::kStartTimeout && has_run && write.fresh &&
        was->attempt == entry.attempt) {
      complain("an attempt whose start is on record ends as one that never started");
    }
    // A pod that is gated or unschedulable waits without limit: the user has set none.
    if (entry.outcome == Outcome::kStartTimeout && !write.spec.schedule_deadline &&
        pod.placement() != Placement::kBound) {
      complain("an attempt times out though its pod has no node");
    }
  }
  // Observers see a renewal at most 5 s late.
  if (!write.fresh || entry.reason != Reason::kNodeSilent) return;
  for (const WorldNode& node : write.nodes) {
    if (node.name == entry.node_name &&
        write.now - node.renewed + seconds(5) < write.spec.lost_after) {
      complain("an attempt is lost though its node renewed in time");
    }
  }
}

// Whether the run is over now, and as what.
void Ledger::check_run_after(const StatusWrite& write, const End& end) {
  const Spec& spec = write.spec;
  const std::int64_t index = end.was.index;
  const Spent& spent = spent_[index];
  const bool success = end.entry->outcome == Outcome::kSucceeded;
  const bool spent_all =
      spec.backoff_limit_per_index &&
      (spent.failures > *spec.backoff_limit_per_index || spent.disruptions > spec.disruption_limit);
  // Its limit may have been lowered. Then an end that costs nothing fails it too, but not one by
  // the job's cancel or end.
  const bool costs =
      end.action != PolicyAction::kIgnore && budget_of(end.entry->outcome) != Budget::kNone;
  const bool stopped = end.entry->outcome == Outcome::kCancelled || spec.cancel;
  const bool failure =
      !success && (end.action == PolicyAction::kFailIndex || (spent_all && (costs || !stopped)));
  if (success != write.next.completed.contains(index)) {
    complain("S16: not each success completes its run");
  }
  // It fails when the place of its attempt is empty.
  const bool fails_later = end.was.at_worker() && spent_all && end.now;
  if (failure != write.next.failed.contains(index) && !fails_later) {
    complain("S8: a run has failed for good without cause, or has not with one");
  }
  if (!success && !failure && !end.now && !is_terminal(write.next.phase)) {
    complain("S16: a run is forgotten");
  }
}

void Ledger::check_budgets(const Status& next) {
  Spent all;
  for (const auto& [index, spent] : spent_) {
    all.failures += spent.failures;
    all.disruptions += spent.disruptions;
  }
  if (next.failures != all.failures) complain("S8: failures are not the ended attempts'");
  if (next.disruptions != all.disruptions) complain("S8: disruptions are not the ended attempts'");
  for (const Run& run : next.runs) {
    const Spent& spent = spent_[run.index];
    if (run.failures != spent.failures || run.disruptions != spent.disruptions) {
      complain("S8: what a run has spent is not what its attempts did");
    }
  }
}

// S16: a run that is over stays over, as what it was, and its attempt ended like that.
void Ledger::check_indexes(const StatusWrite& write, const std::vector<End>& ends) {
  const Status& next = write.next;
  const IndexSet all = write.spec.all_indexes();
  for (const bool success : {true, false}) {
    const IndexSet& now = success ? next.completed : next.failed;
    for (auto index = now.next(0, {}); index; index = now.next(*index + 1, {})) {
      const auto [known, is_new] = over_.emplace(*index, success);
      if (known->second != success) complain("S16: a run counts as succeeded and as failed");
      if (!all.contains(*index)) complain("S16: a run is over that was not asked for");
      if (!is_new) continue;
      const bool ended = std::any_of(ends.begin(), ends.end(), [&](const End& end) {
        return end.was.index == *index && end.entry &&
               (end.entry->outcome == Outcome::kSucceeded) == success;
      });
      const Run* const was = run_at(write.old, *index);
      const auto& limit = write.spec.backoff_limit_per_index;
      const bool is_spent = limit && was && !was->open() &&
                            (was->disruptions > write.spec.disruption_limit ||
                             (was->at_worker() && was->failures > *limit));
      const bool lowered = !success && is_spent;
      if (!ended && !lowered) complain("S16: a run is over without an attempt that ended");
    }
  }
  for (const auto& [index, success] : over_) {
    if (!(success ? next.completed : next.failed).contains(index)) {
      complain("S16: a run that is over is forgotten");
    }
    if (run_at(next, index)) complain("S16: a run that is over goes on");
  }
  for (const Run& run : next.runs) {
    if (!all.contains(run.index)) complain("S16: a run begins that was not asked for");
  }
}

// The job's end has its cause, from the moment when it is decided.
void Ledger::check_outcome(const StatusWrite& write, const std::vector<End>& ends) {
  const Status& next = write.next;
  const Spec& spec = write.spec;
  const bool fails = is_true(next, "FailureTarget");
  const bool succeeds = is_true(next, "SuccessCriteriaMet");
  const bool by_policy = std::any_of(ends.begin(), ends.end(), [](const End& end) {
    return end.action == PolicyAction::kFailJob;
  });
  if (by_policy && !fails) complain("S8: a pod that fails the job does not");
  if (succeeds && fails) complain("S1: a job has two outcomes");
  if (next.phase == Phase::kSucceeded && (!is_true(next, "Complete") || !succeeds)) {
    complain("Succeeded without its conditions");
  }
  if (next.phase == Phase::kFailed && (!is_true(next, "Failed") || !fails)) {
    complain("Failed without its conditions");
  }
  if (succeeds && !has_enough(spec, next.completed)) {
    complain("S16: a job succeeds without the runs that it needs");
  }
  if (fails && !is_true(write.old, "FailureTarget") && !has_cause(write, by_policy)) {
    complain("S8: the job fails without cause: " + next.condition("FailureTarget")->reason);
  }
}

// The time counts from the first attempt, without what the job was suspended, queued or gated. No
// run may still be open, because it may have succeeded, and what has succeeded was not enough.
bool Ledger::is_out_of_time(const StatusWrite& write) const {
  const Status& next = write.next;
  const Spec& spec = write.spec;
  if (!spec.active_deadline || !next.start_time || write.old.says_queued()) return false;
  const bool open =
      std::any_of(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  return !open && !has_enough(spec, next.completed) &&
         write.now >= *next.start_time + *spec.active_deadline + next.suspended;
}

// No job is over beside a pod that runs, wherever its labels are. A lost attempt was given up, and
// so is a pod that does not end though it was asked to.
void Ledger::check_left(const StatusWrite& write) {
  const Phase phase = write.next.phase;
  const bool ends = phase == Phase::kSucceeded || phase == Phase::kFailed;
  if (!write.fresh || !ends || is_terminal(write.old.phase)) return;
  const auto& history = write.next.history;
  for (const PodView& pod : write.pods) {
    if (!made_.count(pod.uid) || pod.owner_uid != job_.uid) continue;
    const Run* const run = write.old.run_of_pod(pod.name);
    if (run && !run->pod_uid.empty() && run->pod_uid != pod.uid) continue;
    const auto node = std::find_if(write.nodes.begin(), write.nodes.end(),
                                   [&](const WorldNode& one) { return one.name == pod.node_name; });
    const bool runs = !pod.ended() && node != write.nodes.end() && node->alive &&
                      write.now - node->missing > seconds(60);
    const bool given_up = pod.deletion && write.now - *pod.deletion >= write.spec.lost_after;
    // History forgets the oldest attempts.
    const std::int64_t attempt = attempt_in_name(job_.name, job_.uid, pod.name);
    const auto entry = std::find_if(history.begin(), history.end(),
                                    [&](const auto& one) { return one.attempt == attempt; });
    const bool is_known = entry != history.end() && entry->outcome != Outcome::kLost;
    if (runs && !given_up && is_known) complain("S6: a job is over beside a pod that runs");
  }
}

// Whether the job may fail for the reason that the write names.
bool Ledger::has_cause(const StatusWrite& write, bool by_policy) const {
  const Status& next = write.next;
  const Spec& spec = write.spec;
  switch (parse_reason(next.condition("FailureTarget")->reason).value_or(Reason::kCompleted)) {
    case Reason::kBackoffLimitExceeded:
      return next.failures > spec.backoff_limit;
    case Reason::kDisruptionLimitExceeded:
      // With limits for each run a lost run fails, and not the job.
      if (spec.many_runs() && spec.backoff_limit_per_index) return false;
      return std::any_of(spent_.begin(), spent_.end(), [&](const auto& run) {
        return run.second.disruptions > spec.disruption_limit;
      });
    case Reason::kPodFailurePolicy:
      return by_policy;
    case Reason::kMaxFailedIndexesExceeded:
      return spec.max_failed_indexes && next.failed.size() > *spec.max_failed_indexes;
    case Reason::kFailedIndexes:
      return !next.failed.empty() && next.failed.size() + next.completed.size() == spec.wanted();
    case Reason::kDeadlineExceeded:
      return is_out_of_time(write);
    case Reason::kPodTemplateInvalid:
      return true;
    default:
      return false;
  }
}

// A lower parallelism stops the runs with the highest indexes, and no more than it must.
void Ledger::check_stopped(const StatusWrite& write, const std::vector<End>& ends) {
  std::int64_t open = std::count_if(write.old.runs.begin(), write.old.runs.end(),
                                    [](const Run& run) { return run.open(); });
  std::int64_t lowest = kCompletionsLimit;
  for (const End& end : ends) {
    if (!end.entry || end.entry->reason != Reason::kParallelismReduced) continue;
    lowest = std::min(lowest, end.was.index);
    if (--open < write.spec.parallelism) complain("S17: parallelism stops more runs than it must");
  }
  for (const Run& run : write.old.runs) {
    const Run* const now = run_at(write.next, run.index);
    const bool goes_on = run.open() && now && now->open() && now->attempt == run.attempt;
    if (goes_on && run.index > lowest) complain("S17: parallelism stops a run with a low index");
  }
}

}  // namespace holdfast::reconciler::testing
