#include "reconciler/job/plan.h"

#include <algorithm>

#include "core/invariant.h"
#include "reconciler/edge_table.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/kstatus.h"
#include "reconciler/job/notifications.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/reporting.h"
#include "reconciler/job/settled.h"
#include "reconciler/job/stages.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/lost_nodes.h"
#include "reconciler/run/authorship.h"

namespace holdfast::reconciler {
namespace {

// Deadlines are computed from the time left on several clocks. Differences below this are noise.
constexpr seconds kDeadlineNoise{2};

bool says_the_same(const std::optional<Waiting>& a, const std::optional<Waiting>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return true;
  if (a->reason != b->reason || a->message != b->message || a->next_action != b->next_action ||
      a->deadline.has_value() != b->deadline.has_value()) {
    return false;
  }
  return !a->deadline || std::chrono::abs(*a->deadline - *b->deadline) <= kDeadlineNoise;
}

void keep_deadline(const Status& before, Status& next) {
  if (says_the_same(next.waiting, before.waiting)) next.waiting = before.waiting;
}

bool same_second(const std::optional<Time>& a, const std::optional<Time>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || std::chrono::floor<seconds>(*a) == std::chrono::floor<seconds>(*b);
}

// No write is made for the fraction of a start alone.
void keep_starts(const Status& before, Status& next) {
  for (std::size_t position = 0; position < next.runs.size() && position < before.runs.size();
       ++position) {
    Run& run = next.runs[position];
    const Run& was = before.runs[position];
    if (run.index == was.index && same_second(run.start_time, was.start_time)) {
      run.start_time = was.start_time;
    }
  }
}

// etcd keeps every version of a status until it compacts: a large one is written less often.
constexpr std::chrono::milliseconds kShortestPause{200};
constexpr std::size_t kBytesPerSecond = std::size_t{128} * 1024;
// For losses, because their bound allows a second from the verdict to the next attempt's record.
constexpr std::chrono::milliseconds kLongestPauseOfLosses{500};
// For successes of a job whose other runs are all open: no run waits for this write.
constexpr seconds kPauseOfLastSuccesses{1};
// A write that only says how the runs of a job with many runs are doing.
constexpr seconds kManyRunsInfoInterval{10};

Duration pause_between_writes(const Job& job) {
  const std::chrono::milliseconds by_size(job.stored_bytes * 1000 / kBytesPerSecond);
  return std::max(kShortestPause, by_size);
}

// No run opens with this write, nor after it.
bool all_runs_are_open(const Spec& spec, const Status& next) {
  const bool none_waits =
      std::all_of(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  const auto begun = static_cast<std::int64_t>(next.runs.size());
  return none_waits && next.completed.size() + next.failed.size() + begun >= spec.wanted();
}

bool has_only(const std::vector<Ended>& ends, Outcome outcome) {
  return !ends.empty() && std::all_of(ends.begin(), ends.end(),
                                      [&](const Ended& end) { return end.outcome == outcome; });
}

// While a job waits for the same thing, `since` keeps its first value.
void record_since(const Context& context, Status& next) {
  const Status& before = context.job.status;
  if (!next.waiting) return;
  if (goes_on_waiting(before, next) && before.waiting->since)
    next.waiting->since = before.waiting->since;
  if (!next.waiting->since) next.waiting->since = context.now;
}

// Only a status that somebody edited or restored says that it is Running without an open run.
bool runs_nothing(const Status& status) {
  return status.phase == Phase::kRunning && !status.has_open_run();
}

// The API server would refuse any of these, and each would be a bug.
void check_planned(const Status& before, const Status& next) {
  invariant(is_edge(before.phase, next.phase, !next.stages.empty()),
            "a status follows an edge of the state machine");
  invariant(next.attempt >= before.attempt, "the attempt, which fences, never falls");
  invariant(next.failures >= before.failures && next.disruptions >= before.disruptions,
            "what a budget has spent stays spent");
  invariant(is_terminal(next.phase) == next.completion_time.has_value(),
            "a job has ended if and only if completionTime says when");
  invariant(is_terminal(next.phase) != next.waiting.has_value(),
            "a job that has not ended says what it waits for");
  invariant(next.has_open_run() == (next.phase == Phase::kRunning),
            "a job is Running while a run of it is open");
  invariant(!is_terminal(next.phase) || next.runs.empty(), "a job that has ended has no runs");
  invariant(next.stage >= before.stage && next.stages.size() == before.stages.size(),
            "a stage that was left does not come back");
  invariant(next.notifications >= before.notifications, "the number of an event is used once");
  invariant(!next.settled || is_terminal(next.phase), "only a job that has ended is settled");
  invariant(!is_terminal(before.phase) || next.notifications == before.notifications,
            "nothing happens to a job that has ended");
  for (std::size_t position = 0; position < before.stages.size(); ++position) {
    invariant(!has_ended(before.stages[position].phase) ||
                  before.stages[position] == next.stages[position],
              "a stage that has ended stays as it is");
  }
}

// A condition that a write sets as it was is the same one, however it was set on the way.
void keep_transitions(const Status& before, Status& status) {
  for (Condition& condition : status.conditions) {
    const Condition* const was = before.condition(condition.type);
    const bool is_same =
        was && was->status == condition.status && was->unknown == condition.unknown;
    if (is_same) condition.last_transition_time = was->last_transition_time;
  }
}

}  // namespace

void Plan::write(WriteStatus status) {
  count_gated_time(context_, status.status);
  name_stage(context_.job, status.status);
  record_since(context_, status.status);
  report_version(context_, status.status);
  if (says_version(status.status) && !says_version(context_.job.status)) {
    status.events.push_back(Event{true, to_string(Reason::kNotKnownToThisVersion), "Start",
                                  status.status.condition("Stalled")->message});
  }
  report_unreadable(context_, status.status);
  if (says_unreadable(status.status) && !says_unreadable(context_.job.status)) {
    status.events.push_back(
        Event{true, kIndexesUnreadable, "Start", status.status.condition("Stalled")->message});
  }
  report_kstatus(status.status, context_.now);
  keep_outbox(context_, status);
  keep_transitions(context_.job.status, status.status);
  const Status& before = context_.job.status;
  keep_within_limits(status, before);
  if (runs_nothing(before) && runs_nothing(status.status)) {
    status.status.phase = idle_phase(context_.spec, status.status);
  }
  // It causes no write by itself.
  auto run = status.status.runs.begin();  // both lists are in order
  for (std::size_t position = 0; position < before.runs.size(); ++position) {
    const Run& was = before.runs[position];
    while (run != status.status.runs.end() && run->index < was.index) ++run;
    if (run == status.status.runs.end()) break;
    if (run->index != was.index || run->attempt != was.attempt || !run->pod_uid.empty()) continue;
    if (run->at_worker()) continue;
    run->pod_uid = proven_pod_uid(context_.view, position, context_.pods[position]);
  }
  if (!context_.view.shard_label.empty()) status.status.shard = context_.view.shard_label;
  status.status.settled = before.settled || may_settle(context_.view, status.status);
  check_planned(before, status.status);
  next_ = status.status;
  decision_.writes.emplace_back(std::move(status));
}

void Plan::inform(Status status, bool at_once) {
  name_stage(context_.job, status);
  keep_within_limits(status);
  const Status& before = context_.job.status;
  report_version(context_, status);
  report_unreadable(context_, status);
  keep_transitions(before, status);
  status.observed_generation = context_.job.generation;
  keep_deadline(before, status);
  Status rest = status;
  keep_starts(before, rest);
  if (rest == before) return;
  keep_words(context_.spec, before, rest);
  keep_deadline(before, rest);
  const bool are_words = rest == before;
  const bool same_reason =
      status.waiting && before.waiting && status.waiting->reason == before.waiting->reason;
  const bool may_wait = context_.spec.many_runs() && same_reason && status.phase == before.phase;
  const Duration shortest =
      std::max<Duration>(kInfoWriteInterval, pause_between_writes(context_.job));
  const Duration since = context_.view.observed.since_write;
  Duration left = shortest - since;
  if (may_wait) {
    Duration longer = kManyRunsInfoInterval - since;
    // No status reports a deadline that has passed.
    if (const auto& reported = before.waiting->deadline)
      longer = std::min(longer, *reported - context_.now);
    left = std::max(left, longer);
  }
  if (are_words) left = std::max<Duration>(left, kWordsInterval - since);
  // What gives the permit back says why. A job that said that it is queued would be admitted again.
  if (!at_once && !gives_back(status) && left > Duration::zero()) return wake_in(left);
  write(WriteStatus{std::move(status)});
}

void Plan::say_shard() {
  const Phase phase = status().phase;
  // The first write of a job says it. Nobody watches a job that has ended for its shard.
  const bool needs_it =
      context_.view.selects_shards && phase != Phase::kNone && !is_terminal(phase);
  if (!needs_it || status().shard == context_.view.shard_label) return;
  Status says = status();
  says.shard = context_.view.shard_label;
  inform(std::move(says));
}

void Plan::write_in_turn(WriteStatus status, bool is_urgent) {
  const bool same_phase = status.status.phase == context_.job.status.phase;
  Duration pause = pause_between_writes(context_.job);
  const bool has_losses =
      std::any_of(status.ended.begin(), status.ended.end(), [](const Ended& end) {
        return end.outcome && budget_of(*end.outcome) == Budget::kDisruptions;
      });
  if (has_losses) pause = std::min<Duration>(pause, kLongestPauseOfLosses);
  const bool opens = status.status.attempt > context_.job.status.attempt;
  if (!opens && has_only(status.ended, Outcome::kSucceeded) &&
      all_runs_are_open(context_.spec, status.status)) {
    pause = std::max<Duration>(pause, kPauseOfLastSuccesses);
  }
  const Duration left = pause - context_.view.observed.since_write;
  if (same_phase && !is_urgent && left > Duration::zero()) return wake_in(left);
  write(std::move(status));
}

bool Plan::looks_at(const std::vector<std::int64_t>& runs,
                    const std::vector<std::int64_t>& creations) {
  return confirm(runs, creations) || !runs.empty() || !creations.empty();
}

bool Plan::confirm(const std::vector<std::int64_t>& runs,
                   const std::vector<std::int64_t>& creations) {
  if (runs.empty() && creations.empty()) return false;
  if (context_.view.observed.looked()) {
    wake_in(Duration::zero());
    return false;
  }
  decision_.confirm = true;
  decision_.confirm_runs.insert(decision_.confirm_runs.end(), runs.begin(), runs.end());
  decision_.confirm_creations = creations;
  return true;
}

void Plan::create_pod(const Run& run) {
  CreatePod pod{run.attempt, run.pod_name, run.start_time, run.index};
  // What refused the pod may have refused the wish.
  if (run.refused.empty()) pod.avoid = lost_nodes(status(), context_.now);
  decision_.writes.emplace_back(std::move(pod));
}

bool Plan::gives_back(const Status& after) const {
  const Observed& observed = context_.view.observed;
  const Status& before = context_.job.status;
  if (!context_.job.queue || !observed.permit.admitted || after.attempt > before.attempt) {
    return false;
  }
  const bool idles = after.phase == Phase::kPending || after.phase == Phase::kBackoff;
  const bool no_pool = context_.spec.pool &&
                       (observed.pool.no_pool || !observed.pool.unknown.empty()) &&
                       after.stage == before.stage;
  const bool starts_nothing =
      context_.spec.parallelism == 0 || no_pool || !context_.job.unknown.empty();
  return after.phase == Phase::kSuspended || (idles && starts_nothing);
}

void Plan::give_back_permit() {
  if (!gives_back(status())) return;
  for (Write& planned : decision_.writes) {
    if (auto* const write = std::get_if<WriteStatus>(&planned)) {
      next_ = write->status;
      next_->attempt = ++write->status.attempt;
      return;
    }
  }
  WriteStatus given = start_write(context_);
  ++given.status.attempt;
  write(std::move(given));
}

void Plan::wake_in(Duration delay) {
  delay = std::max(delay, Duration::zero());
  if (!decision_.wake_after || delay < *decision_.wake_after) decision_.wake_after = delay;
}

}  // namespace holdfast::reconciler
