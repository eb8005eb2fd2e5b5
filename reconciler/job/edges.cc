#include "reconciler/job/edges.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/invariant.h"
#include "core/utf8.h"
#include "reconciler/backoff.h"
#include "reconciler/job/failure_policy.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/success_policy.h"
#include "reconciler/names.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"
#include "reconciler/run/pod_times.h"

namespace holdfast::reconciler {
namespace {

constexpr std::size_t kMessageLimit = 1024;
constexpr std::size_t kReasonLimit = 128;

std::string bounded(std::string text, std::size_t limit = kMessageLimit) {
  if (text.size() <= limit) return text;
  return utf8_prefix(std::move(text), limit - 3) + "...";
}

AnyReason bounded(const AnyReason& reason) {
  return reason.text().size() <= kReasonLimit ? reason
                                              : AnyReason(bounded(reason.text(), kReasonLimit));
}

void end(const Context& context, Status& status, Phase phase) {
  status.phase = phase;
  status.completion_time = context.now;
  if (!status.start_time) status.start_time = context.now;
  status.waiting.reset();
  status.runs.clear();
  clear_condition(status, "Stalled", "Finished", context.now);
  clear_condition(status, "Suspended", "Finished", context.now);
}

HistoryEntry history_entry(const RunContext& context, const Run& run, const Verdict& verdict) {
  const PodView* const pod = context.pod;
  HistoryEntry entry;
  entry.index = run.index;
  entry.attempt = run.attempt;
  entry.pod_name = run.pod_name;
  entry.pod_uid = pod ? pod->uid : known_pod_uid(context.run, context.seen);
  entry.node_name = pod && !pod->node_name.empty() ? pod->node_name : run.node_name;
  entry.outcome = verdict.outcome;
  // Only the new entry's: the API server refuses any change of an old one.
  entry.reason = bounded(verdict.reason);
  entry.exit_code = verdict.exit_code;
  const std::optional<Time> start = pod ? attempt_start(context, *pod) : std::nullopt;
  entry.start_time = start ? start : run.start_time;
  entry.end_time = std::min(verdict.ended.value_or(context.now), context.now);
  if (start) entry.end_time = std::max(*entry.end_time, *start);
  entry.progress = run.progress;
  return entry;
}

void append(std::vector<HistoryEntry>& history, HistoryEntry entry) {
  history.push_back(std::move(entry));
  if (history.size() > kHistoryLimit) history.erase(history.begin());
}

// No attempt is open from now on, and the next one may start at once.
void close_runs(const Context& context, Status& status) {
  for (Run& run : status.runs) run.next_attempt_time = context.now;
}

// The fields of the ended attempt in the run: where and since when it ran.
void keep_last_attempt(const RunContext& context, Run& run) {
  if (!context.pod) return;
  if (!context.pod->node_name.empty()) run.node_name = context.pod->node_name;
  record_start(context, *context.pod, run);
  if (holds_lease(context, *context.pod) && !context.seen.lease->progress_message.empty()) {
    run.progress = context.seen.lease->progress_message;
  }
}

std::string counted(std::int64_t attempts, const std::string& one, const std::string& many) {
  return std::to_string(attempts) + (attempts == 1 ? " attempt " + one : " attempts " + many);
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

Event attempt_event(const Run& run, const Verdict& verdict, Phase next) {
  Event event;
  event.reason = event_reason(verdict.outcome);
  event.action = next == Phase::kFailed ? "Finish" : "Retry";
  event.note = "attempt " + std::to_string(run.attempt) + " ended (" + verdict.reason.text() +
               "): " + verdict.message;
  return event;
}

// Beyond any growth that maxSeconds allows.
constexpr std::int64_t kMostEnds = 1000;

// The pause before the run's next attempt, after the attempt in this entry. After the first loss in
// a row there is no pause.
Duration pause_before_next(const Context& context, const Run& run, const HistoryEntry& entry) {
  const Budget budget = budget_of(entry.outcome);
  if (budget == Budget::kNone) return Duration::zero();
  const auto spent = budget == Budget::kDisruptions ? run.disruptions : run.failures;
  std::vector<HistoryEntry> history = context.job.status.history;
  append(history, entry);
  const auto ends = std::min(ends_in_a_row(history, run.index, budget, spent), kMostEnds);
  const int n = static_cast<int>(budget == Budget::kDisruptions ? ends - 1 : ends);
  if (n < 1) return Duration::zero();
  return backoff_delay(context.spec.retry_backoff, n, context.job.uid, run.attempt);
}

// How many attempts the same outage lost; zero: no outage.
int lost_in_outage(const RunContext& context, Outcome outcome) {
  return outcome == Outcome::kLost ? context.seen.observed.lease.lost_together : 0;
}

}  // namespace

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now) {
  Condition* found = nullptr;
  for (Condition& condition : status.conditions) {
    if (condition.type == type) found = &condition;
  }
  if (!found) {
    // kstatus uses the first that is true, and a job that needs a human is not in progress.
    const auto place = type == "Stalled" ? status.conditions.begin() : status.conditions.end();
    found = &*status.conditions.insert(place, Condition{type, !value, "", "", now});
  }
  if (found->status != value || found->unknown) {
    found->last_transition_time = std::chrono::floor<seconds>(now);
  }
  found->status = value;
  found->unknown = false;
  found->observed_generation.reset();
  found->reason = reason;
  found->message = bounded(message);
}

void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now) {
  const Condition* const condition = status.condition(type);
  if (condition && condition->status) set_condition(status, type, false, reason, "", now);
}

bool any_pod_lives(const Context& context) {
  return std::any_of(context.view.pods.begin(), context.view.pods.end(), [&](const PodView& pod) {
    return is_ours(context.view, pod) && pod_lives(context, pod);
  });
}

Waiting old_pod_waiting(const Context& context) {
  std::string pods;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod) || !pod_lives(context, pod)) continue;
    pods += (pods.empty() ? "" : ", ") + pod.name +
            (pod.node_name.empty() ? "" : " on node " + pod.node_name);
  }
  return Waiting{Reason::kOldPodNotEnded,
                 "podReplacementPolicy is Failed and the old pod has not ended: " + pods,
                 "the next attempt starts when it has ended, or when its node object is deleted",
                 active_deadline(context)};
}

Waiting turn_waiting(const Context& context, const Status& status) {
  return Waiting{Reason::kPodCreationQueued,
                 "the job's namespace has used up its pod creations in flight",
                 "attempt " + std::to_string(status.attempt + 1) +
                     " starts when the API server has answered one of them",
                 active_deadline(context, status)};
}

void keep_within_schema(Waiting& waiting) {
  if (waiting.deadline) waiting.deadline = std::min(*waiting.deadline, kLatestTime);
  waiting.reason = bounded(waiting.reason);
  waiting.message = bounded(std::move(waiting.message));
}

namespace {

bool is_foreign(const Condition& condition) {
  constexpr const char* kOurs[] = {"Cancelled",          "Complete",    "Failed",
                                   "FailureTarget",      "Reconciling", "Stalled",
                                   "SuccessCriteriaMet", "Suspended"};
  return std::none_of(std::begin(kOurs), std::end(kOurs),
                      [&](const char* type) { return condition.type == type; });
}

// The last ones, and no more than needed.
void drop_foreign_conditions(std::vector<Condition>& conditions) {
  for (std::size_t i = conditions.size(); i-- > 0 && conditions.size() > kConditionLimit;) {
    if (is_foreign(conditions[i])) {
      conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace

void keep_within_schema(WriteStatus& write) {
  if (write.status.waiting) keep_within_schema(*write.status.waiting);
  drop_foreign_conditions(write.status.conditions);
  for (Event& event : write.events) event.note = bounded(std::move(event.note));
}

std::optional<JobEnd> spent_budget(const Spec& spec, const Status& status) {
  if (status.failures > spec.backoff_limit) {
    return JobEnd{false, to_string(Reason::kBackoffLimitExceeded),
                  counted(status.failures, "failed", "failed") + ", backoffLimit forgives " +
                      std::to_string(spec.backoff_limit)};
  }
  std::int64_t lost = spec.many_runs() ? 0 : status.disruptions;
  std::string whose;
  for (const Run& run : status.runs) {
    if (!spec.many_runs() || run.disruptions <= lost) continue;
    lost = run.disruptions;
    whose = " of run " + std::to_string(run.index);
  }
  if (lost <= spec.disruption_limit) return std::nullopt;
  return JobEnd{false, to_string(Reason::kDisruptionLimitExceeded),
                counted(lost, "was lost", "were lost") + whose + ", disruptionLimit forgives " +
                    std::to_string(spec.disruption_limit)};
}

std::int64_t last_attempt(const Context& context) {
  const std::int64_t recorded = context.job.status.attempt;
  const std::int64_t seen = context.view.observed.highest_attempt;
  std::int64_t last = seen - recorded <= kMostAhead ? std::max(recorded, seen) : recorded;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod)) continue;
    const std::int64_t other = attempt_in_name(context.job.name, context.job.uid, pod.name);
    if (other - recorded <= kMostAhead) last = std::max(last, other);
  }
  return last;
}

void start_attempt(const Context& context, Status& status, Run& run) {
  status.phase = Phase::kRunning;
  ++status.attempt;
  run.attempt = status.attempt;
  run.attempts = std::min(run.attempts + 1, kCountLimit);
  run.pod_name = pod_name(context.job.name, context.job.uid, run.attempt);
  run.pod_uid.clear();
  run.node_name.clear();
  run.progress.clear();
  run.refused.clear();
  run.next_attempt_time.reset();
  // The milliseconds are the time; the six digits after them are this process's mark.
  run.start_time = std::chrono::floor<std::chrono::milliseconds>(context.now) +
                   Duration(std::max<std::uint64_t>(context.view.observed.nonce % 1'000'000, 1));
  if (!status.start_time) status.start_time = context.now;
  // startDeadlineSeconds counts from the pod's binding, which is still to come.
  status.waiting =
      Waiting{Reason::kPodStarting, "pod " + run.pod_name + " is being created and started",
              "attempt " + std::to_string(run.attempt) + " runs once its pod has started",
              active_deadline(context, status)};
  clear_condition(status, "Stalled", "Started", context.now);
}

std::optional<JobEnd> recorded_end(const Status& status) {
  for (const bool succeeds : {false, true}) {
    const Condition* const found =
        status.condition(succeeds ? "SuccessCriteriaMet" : "FailureTarget");
    if (found && found->status) return JobEnd{succeeds, found->reason, found->message};
  }
  return std::nullopt;
}

void record_end(const Context& context, const JobEnd& end, WriteStatus& write) {
  const bool is_new = !recorded_end(write.status);
  set_condition(write.status, end.succeeds ? "SuccessCriteriaMet" : "FailureTarget", true,
                end.reason, end.message, context.now);
  if (is_new && !end.succeeds) {
    write.events.push_back(Event{true, end.reason, "Finish", end.message});
  }
}

void finish(const Context& context, const JobEnd& reached, WriteStatus& write) {
  Status& status = write.status;
  end(context, status, reached.succeeds ? Phase::kSucceeded : Phase::kFailed);
  record_end(context, reached, write);
  set_condition(status, reached.succeeds ? "Complete" : "Failed", true, reached.reason,
                reached.message, context.now);
  if (!reached.succeeds) {
    set_condition(status, "Stalled", true, reached.reason, reached.message, context.now);
  }
}

void finish_cancelled(const Context& context, Status& status) {
  end(context, status, Phase::kCancelled);
  set_condition(status, "Cancelled", true, "Cancelled", "spec.cancel is true", context.now);
}

void suspend(const Context& context, Status& status) {
  status.phase = Phase::kSuspended;
  close_runs(context, status);
  status.waiting = Waiting{Reason::kSuspended, "spec.suspend is true; no pod runs",
                           "set spec.suspend to false to go on", std::nullopt};
  clear_condition(status, "Stalled", "Suspended", context.now);
  set_condition(status, "Suspended", true, "JobSuspended", "Job suspended", context.now);
}

void start_cancelling(const Context& context, Status& status) {
  status.phase = Phase::kCancelling;
  close_runs(context, status);
  clear_condition(status, "Stalled", "Cancelling", context.now);
  status.waiting =
      Waiting{Reason::kPodTerminating, "the job was cancelled; its pod is being stopped",
              "the job is Cancelled when the pod has ended", std::nullopt};
}

void resume(const Context& context, Status& status) {
  count_suspension(context, status);
  status.phase = Phase::kPending;
  close_runs(context, status);
  status.waiting =
      Waiting{Reason::kResuming, "the job was resumed", "its next attempt starts", std::nullopt};
  set_condition(status, "Suspended", false, "JobResumed", "Job resumed", context.now);
}

Waiting next_attempt_waiting(const Context& context, const Status& status, const AttemptsEnd& end,
                             const Run& run) {
  const std::string ended =
      "attempt " + std::to_string(end.run.attempt) + " ended as " + to_string(end.verdict.outcome);
  Waiting waiting{Reason::kRetryBackoff, ended + "; the next one waits its back-off",
                  "attempt " + std::to_string(status.attempt + 1) + " starts",
                  run.next_attempt_time};
  if (end.lost_together > 0) {
    waiting.reason = Reason::kRestartsSpread;
    waiting.message = ended + " in an outage of the API server, one of about " +
                      std::to_string(end.lost_together) + "; their next attempts are spread";
  }
  if (context.deadline) waiting.deadline = std::min(*context.deadline, *waiting.deadline);
  return waiting;
}

namespace {

void spend(std::int64_t& spent) { spent = std::min(spent + 1, kCountLimit); }

void count(Budget budget, Status& status, Run& run) {
  if (budget == Budget::kNone) return;
  const bool failed = budget == Budget::kFailures;
  spend(failed ? status.failures : status.disruptions);
  spend(failed ? run.failures : run.disruptions);
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

}  // namespace

AttemptsEnd end_attempt(const RunContext& context, const AttemptEnd& end, WriteStatus& write) {
  const Verdict& verdict = end.verdict;
  Status& status = write.status;
  const auto found = std::find_if(status.runs.begin(), status.runs.end(),
                                  [&](const Run& run) { return run.index == context.run.index; });
  invariant(found != status.runs.end(), "an attempt that ends is of a run on record");
  Run& run = *found;
  keep_last_attempt(context, run);
  run.refused.clear();
  const PolicyMatch policy = judge_by_policy(context, verdict);
  if (policy.action != PolicyAction::kIgnore) count(budget_of(verdict.outcome), status, run);
  write.ended.push_back({run.index, verdict.outcome, verdict.orphan_class, end.trouble_for});
  AttemptsEnd ended{run, verdict, history_entry(context, run, verdict)};
  ended.pod_lives = context.pod && pod_lives(context, *context.pod);
  if (verdict.outcome == Outcome::kSucceeded) {
    status.completed.add(run.index);
    status.runs.erase(found);
    return ended;
  }
  if (policy.action == PolicyAction::kFailJob) ended.fails_job = policy.message;
  if (policy.action == PolicyAction::kFailIndex || has_failed_for_good(context.spec, run)) {
    status.failed.add(run.index);
    status.runs.erase(found);
    return ended;
  }
  const int lost = lost_in_outage(context, verdict.outcome);
  const Duration spread = restart_wait(lost, context.job.uid, run.attempt);
  run.next_attempt_time = context.now + pause_before_next(context, run, ended.entry) + spread;
  ended.lost_together = spread > Duration::zero() ? lost : 0;
  return ended;
}

void record_ends(const std::vector<AttemptsEnd>& ends, Status& status) {
  constexpr std::size_t kMost = kHistoryLimit - 1;
  const auto succeeded = [](const AttemptsEnd& end) {
    return end.verdict.outcome == Outcome::kSucceeded;
  };
  const auto bad =
      ends.size() - static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), succeeded));
  std::size_t room_for_good = kMost - std::min(kMost, bad);
  std::size_t room_for_bad = std::min(kMost, bad);
  for (const AttemptsEnd& end : ends) {
    std::size_t& room = succeeded(end) ? room_for_good : room_for_bad;
    if (room == 0) continue;
    --room;
    append(status.history, end.entry);
  }
}

namespace {

std::optional<JobEnd> judge_failure(const Context& context, const std::vector<AttemptsEnd>& ends,
                                    const Status& status) {
  const Spec& spec = context.spec;
  const AttemptsEnd* const last = ends.empty() ? nullptr : &ends.back();
  bool overran = false;
  for (const AttemptsEnd& end : ends) {
    if (end.fails_job) return JobEnd{false, to_string(Reason::kPodFailurePolicy), *end.fails_job};
    overran = overran || end.verdict.reason == Reason::kDeadlineExceeded;
  }
  // The request came first, and its attempts cost nothing.
  if (last && last->verdict.outcome == Outcome::kCancelled) return std::nullopt;
  const bool out_of_time = context.deadline && context.now >= *context.deadline;
  const JobEnd late{false, to_string(Reason::kDeadlineExceeded), kJobDeadlineMessage};
  if (out_of_time && overran) return late;
  if (std::optional<JobEnd> spent = spent_budget(spec, status)) {
    if (last) {
      spent->message +=
          "; the last one: " + last->verdict.reason.text() + ": " + last->verdict.message;
    }
    return spent;
  }
  if (spec.max_failed_indexes && status.failed.size() > *spec.max_failed_indexes) {
    return JobEnd{false, to_string(Reason::kMaxFailedIndexesExceeded),
                  "Job has exceeded the specified maximal number of failed indexes"};
  }
  if (!status.failed.empty() && status.completed.size() + status.failed.size() >= spec.wanted()) {
    return JobEnd{false, to_string(Reason::kFailedIndexes), "Job has failed indexes"};
  }
  return out_of_time && (!last || (!spec.cancel && !spec.suspend)) ? std::optional(late)
                                                                   : std::nullopt;
}

}  // namespace

std::optional<JobEnd> judge_job(const Context& context, const std::vector<AttemptsEnd>& ends,
                                const Status& status) {
  const bool completed = status.completed.size() >= context.spec.wanted();
  std::optional<JobEnd> failure = judge_failure(context, ends, status);
  if (failure && !(completed && !context.spec.many_runs())) return failure;
  if (completed) {
    return JobEnd{true, "CompletionsReached", "Reached expected number of succeeded pods"};
  }
  if (const auto met = match_success_policy(context.spec, status.completed)) {
    return JobEnd{true, to_string(Reason::kSuccessPolicy), *met};
  }
  return std::nullopt;
}

namespace {

// The whole job's deadline is reported once, as the job's end. A pod may fail with the same reason,
// by the deadline of its own template.
bool is_worth_an_event(const Verdict& verdict) {
  const bool by_job_deadline =
      verdict.outcome == Outcome::kDeadlineExceeded && verdict.reason == Reason::kDeadlineExceeded;
  return event_reason(verdict.outcome)[0] != '\0' && !by_job_deadline;
}

}  // namespace

void tell_of_ends(const std::vector<AttemptsEnd>& ends, WriteStatus& write) {
  std::map<std::string, int> outcomes;
  const AttemptsEnd* last = nullptr;
  int told = 0;
  for (const AttemptsEnd& end : ends) {
    if (!is_worth_an_event(end.verdict)) continue;
    ++outcomes[to_string(end.verdict.outcome)];
    last = &end;
    ++told;
  }
  if (!last) return;
  Event event = attempt_event(last->run, last->verdict, write.status.phase);
  if (told > 1) {
    std::string counts;
    for (const auto& [outcome, count] : outcomes) {
      counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + outcome;
    }
    event.reason = "AttemptsEnded";
    event.note = std::to_string(told) + " attempts ended (" + counts + "); the last one: run " +
                 std::to_string(last->run.index) + ", " + event.note;
  }
  write.events.push_back(std::move(event));
}

}  // namespace holdfast::reconciler
