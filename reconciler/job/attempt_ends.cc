#include "reconciler/job/attempt_ends.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/invariant.h"
#include "reconciler/backoff.h"
#include "reconciler/job/failure_policy.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"
#include "reconciler/run/pod_times.h"
#include "reconciler/run/slot.h"

namespace holdfast::reconciler {
namespace {

HistoryEntry history_entry(const RunContext& context, const Run& run, const Verdict& verdict) {
  const PodView* const pod = context.pod;
  const bool at_worker = run.at_worker();
  HistoryEntry entry;
  const Status& status = context.job.status;
  if (!status.stages.empty()) entry.stage = status.stages[status.stage].name;
  entry.index = run.index;
  entry.alone = !context.spec.many_runs() && status.stages.empty();
  entry.attempt = run.attempt;
  entry.worker_name = run.worker_name;
  if (!at_worker) {
    entry.pod_name = run.pod_name;
    entry.pod_uid = pod ? pod->uid : known_pod_uid(context.run, context.seen);
    entry.node_name = pod && !pod->node_name.empty() ? pod->node_name : run.node_name;
  }
  entry.outcome = verdict.outcome;
  // Only the new entry's: the API server refuses any change of an old one.
  entry.reason = bounded(verdict.reason);
  entry.exit_code = verdict.exit_code;
  const std::optional<Time> start = pod ? attempt_start(context, *pod) : std::nullopt;
  entry.start_time = start ? start : run.start_time;
  entry.end_time = std::min(verdict.ended.value_or(context.now), context.now);
  if (start) entry.end_time = std::max(*entry.end_time, *start);
  entry.progress = run.progress;
  if (verdict.outcome != Outcome::kSucceeded) {
    entry.message = history_message(verdict.message, verdict.output);
  }
  return entry;
}

// Of kHistoryLimit entries.
constexpr std::ptrdiff_t kMostDeferralEntries = 5;

// Deferrals in a row share an entry, so that a job that polls keeps its earlier history.
void append(std::vector<HistoryEntry>& history, HistoryEntry entry) {
  const bool again = entry.outcome == Outcome::kDeferred && !history.empty() &&
                     history.back().outcome == Outcome::kDeferred &&
                     history.back().stage == entry.stage;
  if (again) {
    entry.count = std::min(history.back().count + 1, kCountLimit);
    entry.start_time = history.back().start_time;
    history.back() = std::move(entry);
    return;
  }
  // The API server takes so many entries of deferrals. Those of different stages may be neighbours.
  const auto is_deferral = [](const HistoryEntry& one) {
    return one.outcome == Outcome::kDeferred;
  };
  if (is_deferral(entry) &&
      std::count_if(history.begin(), history.end(), is_deferral) >= kMostDeferralEntries) {
    history.erase(std::find_if(history.begin(), history.end(), is_deferral));
  }
  history.push_back(std::move(entry));
  if (history.size() > kHistoryLimit) history.erase(history.begin());
}

// The fields of the ended attempt in the run: where and since when it ran.
void keep_last_attempt(const RunContext& context, Run& run) {
  if (context.run.at_worker()) {
    const auto& slot = context.seen.slot;
    if (slot && !slot->progress.empty()) run.progress = slot->progress;
    if (slot && !slot->checkpoint.empty()) run.checkpoint = slot->checkpoint;
    return;
  }
  if (!context.pod) return;
  if (!context.pod->node_name.empty()) run.node_name = context.pod->node_name;
  record_start(context, *context.pod, run);
  if (holds_lease(context, *context.pod) && !context.seen.lease->progress_message.empty()) {
    run.progress = context.seen.lease->progress_message;
  }
}

const char* event_reason(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
      return "AttemptFailed";
    case Outcome::kLost:
      return "AttemptLost";
    case Outcome::kHung:
      return "AttemptHung";
    case Outcome::kStartTimeout:
      return "AttemptStartTimeout";
    case Outcome::kDeadlineExceeded:
      return "AttemptDeadlineExceeded";
    default:
      return "";
  }
}

Event attempt_event(const Spec& spec, const Run& run, const Verdict& verdict, Phase next) {
  const std::string whose = spec.many_runs() ? "run " + std::to_string(run.index) + ", " : "";
  Event event;
  event.reason = event_reason(verdict.outcome);
  event.action = next == Phase::kFailed ? "Finish" : "Retry";
  event.note = whose + "attempt " + std::to_string(run.attempt) + " ended (" +
               verdict.reason.text() + "): " + in_one_line(verdict);
  return event;
}

constexpr seconds kPauseOfHandBacks{1};
// Beyond any growth that maxSeconds allows.
constexpr std::int64_t kMostEnds = 1000;

// The pause before the run's next attempt, after the attempt in this entry. After the first loss in
// a row there is no pause. An end that spends no budget, by a rule of the user's, waits as well.
Duration pause_before_next(const Context& context, const Run& run, const HistoryEntry& entry,
                           bool is_ignored) {
  // A worker that drains hands back once. More in a row are trouble, and must not spin.
  const bool again = entry.outcome == Outcome::kHandedBack && !context.job.status.history.empty() &&
                     context.job.status.history.back().outcome == Outcome::kHandedBack;
  if (again) return kPauseOfHandBacks;
  const Budget budget = budget_of(entry.outcome);
  if (budget == Budget::kNone) return Duration::zero();
  const auto counted = budget == Budget::kDisruptions ? run.disruptions : run.failures;
  const auto spent = is_ignored ? run.attempts - run.failures - run.disruptions : counted;
  std::vector<HistoryEntry> history = context.job.status.history;
  append(history, entry);
  std::erase_if(history, [&](const HistoryEntry& one) { return one.stage != entry.stage; });
  const auto ends = std::min(ends_in_a_row(history, run.index, budget, spent), kMostEnds);
  const int n = static_cast<int>(budget == Budget::kDisruptions ? ends - 1 : ends);
  if (n < 1) return Duration::zero();
  return backoff_delay(context.spec.retry_backoff, n, context.job.uid, run.attempt);
}

// How many attempts the same outage lost; zero: no outage.
int lost_in_outage(const RunContext& context, Outcome outcome) {
  return outcome == Outcome::kLost ? context.seen.observed.lease.lost_together : 0;
}

void spend(std::int64_t& spent, std::int64_t more = 1) {
  spent = std::min(spent + more, kCountLimit);
}

// How often the attempt's agent ran the command again in its pod.
std::int64_t deferred_in_pod(const RunContext& context) {
  const auto& lease = context.seen.lease;
  const bool is_its = context.spec.heartbeat && lease && lease->attempt == context.run.attempt;
  return is_its ? lease->deferrals : 0;
}

// The entry of the current stage; null: the job has no stages, or the stage's end is on record and
// its last attempts no longer matter.
StageStatus* running_stage(Status& status) {
  if (status.stages.empty() || has_ended(status.stages[status.stage].phase)) return nullptr;
  return &status.stages[status.stage];
}

void count(Budget budget, Status& status, Run& run) {
  if (budget == Budget::kNone) return;
  const bool failed = budget == Budget::kFailures;
  spend(failed ? status.failures : status.disruptions);
  spend(failed ? run.failures : run.disruptions);
  StageStatus* const stage = running_stage(status);
  if (stage) spend(failed ? stage->failures : stage->disruptions);
}

// What the pod left in its first container's termination message.
std::string result_of(const RunContext& context) {
  const auto& containers = context.pod->containers;
  const auto first = std::find_if(containers.begin(), containers.end(), [&](const auto& one) {
    return !one.init && one.name == context.spec.first_container;
  });
  return first != containers.end() && first->terminated ? first->terminated->message : "";
}

// Only a pod that says itself that it has failed is a matter of the policy, and only if the
// operator made it. A loss that Holdfast has found is a disruption.
PolicyMatch judge_by_policy(const RunContext& context, const Verdict& verdict) {
  const PodView* const pod = context.pod;
  const bool failed = pod && pod->phase == PodPhase::kFailed &&
                      budget_of(verdict.outcome) != Budget::kNone &&
                      is_proven(context.view, context.run, context.seen, *pod);
  return failed ? match_failure_policy(context.spec, context.job.namespace_, *pod) : PolicyMatch{};
}

// A run that has spent its own budget has no further attempt.
bool has_failed_for_good(const Spec& spec, const Run& run) {
  return spec.backoff_limit_per_index &&
         (run.failures > *spec.backoff_limit_per_index || run.disruptions > spec.disruption_limit);
}

// A deferral is no end that a budget counts. An end that a budget counts ends the row of deferrals.
void count_deferrals(const RunContext& context, bool is_deferred, Outcome outcome, Status& status,
                     Run& run) {
  const std::int64_t in_pod = deferred_in_pod(context);
  if (is_deferred) {
    spend(run.deferrals, 1 + in_pod);
  } else if (budget_of(outcome) != Budget::kNone) {
    run.deferrals = 0;
  }
  if (StageStatus* const stage = running_stage(status)) {
    spend(stage->deferrals, (is_deferred ? 1 : 0) + in_pod);
  }
}

// The job has failed if it is deferred too often in a row.
std::optional<AttemptsEnd::Failure> spent_deferrals(const PolicyMatch& policy, const Run& run) {
  if (run.deferrals <= policy.rule->defer_limit) return std::nullopt;
  return AttemptsEnd::Failure{
      Reason::kDeferLimitExceeded,
      std::to_string(run.deferrals) + " deferrals in a row, deferLimit allows " +
          std::to_string(policy.rule->defer_limit) + "; the last one: " + policy.message};
}

bool is_worth_an_event(const Verdict& verdict) { return event_reason(verdict.outcome)[0] != '\0'; }

}  // namespace

AttemptsEnd end_attempt(const RunContext& context, const AttemptEnd& end, WriteStatus& write) {
  const PolicyMatch policy = judge_by_policy(context, end.verdict);
  const bool is_deferred = policy.action == PolicyAction::kDefer;
  Verdict verdict = end.verdict;
  if (is_deferred) {
    verdict.outcome = Outcome::kDeferred;
    verdict.message = policy.message;
  }
  Status& status = write.status;
  const auto found = std::find_if(status.runs.begin(), status.runs.end(),
                                  [&](const Run& run) { return run.index == context.run.index; });
  invariant(found != status.runs.end(), "an attempt that ends is of a run on record");
  Run& run = *found;
  keep_last_attempt(context, run);
  run.refused.clear();
  run.alone = run.alone || verdict.reason == Reason::kWorkerOOMKilled;
  count_deferrals(context, is_deferred, verdict.outcome, status, run);
  const bool is_ignored = policy.action == PolicyAction::kIgnore;
  const Budget budget = is_ignored ? Budget::kNone : budget_of(verdict.outcome);
  count(budget, status, run);
  const bool is_recovery = verdict.outcome != Outcome::kDeferred;
  write.ended.push_back({run.index, verdict.outcome,
                         is_recovery ? verdict.orphan_class : OrphanClass::kNone, end.trouble_for});
  AttemptsEnd ended{run, verdict, history_entry(context, run, verdict)};
  if (verdict.outcome == Outcome::kSucceeded) {
    status.completed.add(run.index);
    StageStatus* const stage = running_stage(status);
    if (stage && !context.spec.many_runs() && context.pod) stage->result = result_of(context);
    status.runs.erase(found);
    return ended;
  }
  if (policy.action == PolicyAction::kFailJob) {
    ended.fails_job = {Reason::kPodFailurePolicy, policy.message};
  }
  if (is_deferred) {
    ended.fails_job = spent_deferrals(policy, run);
    run.next_attempt_time = context.now + policy.rule->defer_for;
    return ended;
  }
  const bool is_spent = budget != Budget::kNone && has_failed_for_good(context.spec, run);
  if (is_spent && runs_at_worker(context, run)) {
    run.next_attempt_time = context.now;
    return ended;
  }
  if (policy.action == PolicyAction::kFailIndex || is_spent) {
    status.failed.add(run.index);
    status.runs.erase(found);
    return ended;
  }
  const int lost = lost_in_outage(context, verdict.outcome);
  const Duration spread = restart_wait(lost, context.job.uid, run.attempt);
  const Duration pause = pause_before_next(context, run, ended.entry, is_ignored);
  run.next_attempt_time = context.now + pause + spread;
  ended.lost_together = spread > Duration::zero() ? lost : 0;
  return ended;
}

namespace {

// The request to cancel came first, and its attempts cost nothing.
bool is_overspent(const Context& context, const Run& run) {
  return !context.spec.cancel && !run.open() && has_failed_for_good(context.spec, run) &&
         !runs_at_worker(context, run);
}

}  // namespace

bool has_overspent_run(const Context& context) {
  const auto& runs = context.job.status.runs;
  return std::any_of(runs.begin(), runs.end(),
                     [&](const Run& run) { return is_overspent(context, run); });
}

void fail_overspent_runs(const Context& context, WriteStatus& write) {
  Status& status = write.status;
  std::optional<Run> last;
  std::int64_t count = 0;
  std::erase_if(status.runs, [&](const Run& run) {
    if (!is_overspent(context, run)) return false;
    status.failed.add(run.index);
    last = run;
    ++count;
    return true;
  });
  if (!last) return;
  write.events.push_back(
      Event{true, "RunsFailed", "Finish",
            std::to_string(count) +
                " waiting runs failed, because their limits are spent; the last one: run " +
                std::to_string(last->index) + ", which failed " + std::to_string(last->failures) +
                " times and was lost " + std::to_string(last->disruptions) + " times"});
}

namespace {

// The API server refuses a write that drops the newest entry. Deferrals do not count there, so the
// newest other one stays.
std::size_t room_in(const std::vector<HistoryEntry>& history) {
  const auto newest = std::find_if(history.rbegin(), history.rend(), [](const auto& entry) {
    return entry.outcome != Outcome::kDeferred;
  });
  const auto after = newest == history.rend() ? 0 : newest - history.rbegin();
  return kHistoryLimit - 1 - std::min(static_cast<std::size_t>(after), kHistoryLimit - 1);
}

}  // namespace

void record_ends(const std::vector<AttemptsEnd>& ends, Status& status) {
  const auto is_deferred = [](const auto& end) { return end.entry.outcome == Outcome::kDeferred; };
  std::size_t most = room_in(status.history);
  const bool shares = !status.history.empty() && !ends.empty() &&
                      status.history.back().outcome == Outcome::kDeferred &&
                      status.history.back().stage == ends.front().entry.stage;
  // All deferrals together share one entry, if any.
  if (std::any_of(ends.begin(), ends.end(), is_deferred) && !shares && most > 0) --most;
  for (const AttemptsEnd& end : ends) {
    if (is_deferred(end)) append(status.history, end.entry);
  }
  const auto succeeded = [](const AttemptsEnd& end) {
    return end.verdict.outcome == Outcome::kSucceeded;
  };
  const auto bad =
      static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), [&](const auto& end) {
        return !succeeded(end) && !is_deferred(end);
      }));
  std::size_t room_for_good = most - std::min(most, bad);
  std::size_t room_for_bad = std::min(most, bad);
  for (const AttemptsEnd& end : ends) {
    std::size_t& room = succeeded(end) ? room_for_good : room_for_bad;
    if (room == 0 || is_deferred(end)) continue;
    --room;
    append(status.history, end.entry);
  }
}

void report_ends(const Spec& spec, const std::vector<AttemptsEnd>& ends, WriteStatus& write) {
  std::map<std::string, int> outcomes;
  const AttemptsEnd* last = nullptr;
  int reported = 0;
  for (const AttemptsEnd& end : ends) {
    if (!is_worth_an_event(end.verdict)) continue;
    ++outcomes[to_string(end.verdict.outcome)];
    last = &end;
    ++reported;
  }
  if (!last) return;
  Event event = attempt_event(spec, last->run, last->verdict, write.status.phase);
  if (reported > 1) {
    std::string counts;
    for (const auto& [outcome, count] : outcomes) {
      counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + outcome;
    }
    event.reason = "AttemptsEnded";
    event.note =
        std::to_string(reported) + " attempts ended (" + counts + "); the last one: " + event.note;
  }
  write.events.push_back(std::move(event));
}

}  // namespace holdfast::reconciler
