#include "tests/unit/reconciler/rules.h"

#include <algorithm>
#include <set>

#include "reconciler/edge_table.h"
#include "reconciler/run/verdict.h"
#include "tests/unit/reconciler/rules_outbox.h"
#include "tests/unit/reconciler/rules_writes.h"

namespace holdfast::reconciler::testing {
namespace {

bool same_but_conditions(Status a, Status b) {
  a.conditions = b.conditions;
  a.outbox = b.outbox;  // refused_outbox() judges it
  a.settled = a.settled || b.settled;
  a.shard = b.shard;
  a.observed_generation = b.observed_generation;
  return a == b;
}

// Deferrals in a row share an entry, so they do not count.
bool may_follow(std::vector<HistoryEntry> next, std::vector<HistoryEntry> old) {
  if (next == old) return true;
  const bool is_full = next.size() == 10;
  const auto is_deferral = [](const auto& entry) { return entry.outcome == Outcome::kDeferred; };
  if (std::count_if(next.begin(), next.end(), is_deferral) > 5) return false;
  for (auto* const history : {&next, &old}) {
    std::erase_if(*history, [](const auto& entry) { return entry.outcome == Outcome::kDeferred; });
  }
  for (std::size_t dropped = 0; dropped < old.size() || dropped == 0; ++dropped) {
    const auto first = old.begin() + static_cast<std::ptrdiff_t>(dropped);
    const auto kept = static_cast<std::size_t>(old.end() - first);
    if (kept > next.size() || !std::equal(first, old.end(), next.begin())) continue;
    return dropped == 0 || is_full;
  }
  return false;
}

std::string refused_text(const Status& status) {
  if (status.waiting) {
    const Waiting& waiting = *status.waiting;
    if (waiting.reason.empty() || waiting.reason.text().size() > 128) return "waiting.reason size";
    if (waiting.message.size() > 8192) return "waiting.message size";
    if (waiting.next_action.empty() || waiting.next_action.size() > 1024) {
      return "waiting.nextAction size";
    }
  }
  if (status.history.size() > 10) return "history is too long";
  for (const HistoryEntry& entry : status.history) {
    if (entry.reason.text().size() > 1024) return "history reason size";
  }
  constexpr std::int64_t kMostCounted = 2'147'483'648;
  if (status.failures > kMostCounted || status.disruptions > kMostCounted) return "S8: too many";
  if (status.suspended > seconds(2'147'483'647)) return "suspendedSeconds is too long";
  if (status.conditions.size() > 16) return "too many conditions";
  for (const Condition& condition : status.conditions) {
    if (condition.reason.empty()) return "condition without a reason";
    if (condition.message.size() > 32768) return "condition message size";
  }
  return "";
}

std::string broken_look(const JobView& view, const Decision& decision) {
  if (!decision.writes.empty()) return "writes before the live look that it asks for";
  const bool of_last = decision.confirm_runs.empty() && decision.confirm_creations.empty();
  bool had = view.observed.looked() || (of_last && view.observed.confirmed);
  for (const std::int64_t index : decision.confirm_runs) {
    const Run* const run = run_at(view.job.status, index);
    if (!run) return "asks for a live look at a run that is not on record";
    had = had ||
          view.seen(static_cast<std::size_t>(run - view.job.status.runs.data())).observed.confirmed;
  }
  return had ? "asks for a live look that it just had" : "";
}

// Each attempt that opens has its pod created. A job that does not run creates none.
std::string broken_creations(const JobView& view, const Decision& decision, const Status& next) {
  std::set<std::int64_t> created;  // attempts
  for (const Write& write : decision.writes) {
    if (const auto* const create = std::get_if<CreatePod>(&write)) created.insert(create->attempt);
  }
  if (!created.empty() && (next.phase != Phase::kRunning || view.job.deleting)) {
    return "a pod is created without an attempt that runs";
  }
  // The pods of a new stage come with the next look, which has its template.
  if (next.stage != view.job.status.stage) return "";
  for (const Run& run : next.runs) {
    const bool starts = run.open() && run.attempt > view.job.status.attempt;
    if (starts && !run.at_worker() && created.count(run.attempt) == 0) {
      return "an intent without its pod";
    }
  }
  return "";
}

bool matches(const PolicyRule::ExitCodes& codes, const PodView& pod) {
  return std::any_of(pod.containers.begin(), pod.containers.end(), [&](const ContainerView& one) {
    if (!one.terminated || !one.terminated->was_seen || fenced_itself(one)) return false;
    if (!codes.container.empty() && codes.container != one.name) return false;
    const int code = one.terminated->exit_code;
    return code != 0 &&
           codes.in == (std::count(codes.values.begin(), codes.values.end(), code) > 0);
  });
}

bool matches(const PolicyRule& rule, const PodView& pod) {
  if (rule.exit_codes) return matches(*rule.exit_codes, pod);
  return std::any_of(pod.conditions.begin(), pod.conditions.end(), [&](const auto& is) {
    return std::any_of(rule.conditions.begin(), rule.conditions.end(), [&](const auto& wanted) {
      return is.type == wanted.type && is.status == wanted.status;
    });
  });
}

}  // namespace

const Run* run_at(const Status& status, std::int64_t index) {
  const auto found = std::find_if(status.runs.begin(), status.runs.end(),
                                  [&](const Run& run) { return run.index == index; });
  return found == status.runs.end() ? nullptr : &*found;
}

bool is_true(const Status& status, const char* condition) {
  const Condition* const found = status.condition(condition);
  return found && found->status;
}

bool rests(const Spec& spec, const Status& status, bool no_pool) {
  const bool idles = status.phase == Phase::kPending || status.phase == Phase::kBackoff;
  const bool starts_none = spec.parallelism == 0 || (spec.pool && no_pool);
  return status.phase == Phase::kSuspended || (idles && starts_none);
}

PolicyAction policy_on(const Spec& spec, const PodView& pod) {
  if (pod.phase != PodPhase::kFailed) return PolicyAction::kCount;
  for (const PolicyRule& rule : spec.pod_failure_policy) {
    if (!matches(rule, pod)) continue;
    const bool counts = rule.action == PolicyAction::kFailIndex && !spec.backoff_limit_per_index;
    return counts ? PolicyAction::kCount : rule.action;
  }
  return PolicyAction::kCount;
}

namespace {

// A stage that has ended never changes, none comes back, and the job moves on from an ended one.
std::string refused_stages(const Status& old, const Status& next) {
  if (next.stages.size() != old.stages.size()) return "S20: a stage comes or goes";
  if (next.stages.empty()) return "";
  for (std::size_t position = 0; position < old.stages.size(); ++position) {
    const StageStatus& was = old.stages[position];
    const StageStatus& now = next.stages[position];
    if (has_ended(was.phase) && !(was == now)) return "S20: a stage that has ended changes";
    if (was.phase == StagePhase::kRunning && now.phase == StagePhase::kPending) {
      return "S20: a stage that has begun has not";
    }
    if (now.failures < was.failures || now.disruptions < was.disruptions) {
      return "S8: a stage's budget falls";
    }
    if (is_terminal(next.phase) && !has_ended(now.phase)) return "S20: a stage outlives the job";
    if (now.result.size() > 1024 || now.message.size() > 1024) return "a stage's text is too long";
  }
  if (next.stage == old.stage) return "";
  if (!has_ended(next.stages[old.stage].phase)) return "S20: a stage is left that has not ended";
  if (old.stages[next.stage].phase != StagePhase::kPending) return "S20: a stage begins again";
  return "";
}

}  // namespace

std::string refused_by_api(const Status& old, const Status& next) {
  if (!is_edge(old.phase, next.phase, !next.stages.empty())) {
    return std::string("S4: edge ") + to_string(old.phase) + " -> " + to_string(next.phase);
  }
  if (const std::string why = refused_stages(old, next); !why.empty()) return why;
  if (const std::string why = refused_outbox(old, next); !why.empty()) return why;
  if (is_terminal(old.phase) && !same_but_conditions(old, next)) {
    return "S1: a final status is changed";
  }
  if (next.settled && !is_terminal(next.phase)) return "settled";
  if (old.settled && !next.settled) return "settled again";
  if (is_terminal(next.phase) != next.completion_time.has_value()) return "completionTime";
  if (is_terminal(next.phase) == next.waiting.has_value()) {
    return "waiting must stand in every phase that is not terminal, and in no other";
  }
  if (is_terminal(next.phase) && !next.runs.empty()) return "a job that has ended has runs";
  if (next.attempt < old.attempt) return "S3: attempt falls";
  const bool begun = next.phase == Phase::kRunning || next.phase == Phase::kBackoff ||
                     next.phase == Phase::kSucceeded;
  if (begun && next.attempt == 0) return "a phase that needs an attempt";
  for (const Run& run : next.runs) {
    if (run.attempt > next.attempt) return "a run has an attempt above the job's";
  }
  if (next.failures < old.failures || next.disruptions < old.disruptions) return "S8: budget falls";
  if (old.start_time && next.start_time != old.start_time) return "startTime changes";
  if (old.completion_time && next.completion_time != old.completion_time) {
    return "completionTime changes";
  }
  if (next.suspended < old.suspended) return "suspendedSeconds falls";
  for (const char* const outcome : {"FailureTarget", "SuccessCriteriaMet", "ResultReady"}) {
    if (is_true(old, outcome) && !is_true(next, outcome)) return "a decided outcome is taken back";
  }
  if (!may_follow(next.history, old.history)) return "history is rewritten";
  return refused_text(next);
}

namespace {

// Who asks for a permit has none and needs one. After a second the status says so. A write that
// came just before may delay that.
std::string broken_queueing(const JobView& view, const Decision& decision, const Status& next) {
  const Status& old = view.job.status;
  const PermitView& permit = view.observed.permit;
  const bool moves = next.stage != old.stage;
  const bool no_pool = view.observed.pool.no_pool && !moves;
  const bool gives_back = permit.admitted && view.job.queue && rests(view.job.spec, next, no_pool);
  if (gives_back && !view.job.deleting && next.attempt == old.attempt) {
    return "S19: an admitted job rests, and does not give its permit back";
  }
  if (gives_back && no_pool && next.says_queued()) {
    return "S19: a job without its pool asks for the permit that it gives back";
  }
  if (!decision.awaits_permit) {
    const bool begins = next.says_queued() && !old.says_queued();
    return begins && !moves ? "says that it waits in a queue, and asks for no permit" : "";
  }
  if (!view.job.queue || permit.admitted || view.job.deleting || old.phase == Phase::kRunning) {
    return "S19: asks for a permit that it has, or has no use for";
  }
  if (next.attempt != old.attempt) return "S19: starts, and asks for a permit to start";
  if (permit.waited < seconds(1) && !old.says_queued()) return "";
  const Reason right = permit.no_queue ? Reason::kQueueMissing : Reason::kQueued;
  const bool is_reported = next.waiting && next.waiting->reason == right;
  if (is_reported && old.says_queued() && old.waiting->since &&
      next.waiting->since != old.waiting->since) {
    return "a job that still waits in its queue forgets since when";
  }
  const bool has_just_written = view.observed.since_write < seconds(1) && decision.wake_after;
  return is_reported || has_just_written ? "" : "does not say that it waits in a queue";
}

}  // namespace

std::string broken_by(const JobView& view, const Decision& decision, Time now) {
  const Job& job = view.job;
  if (decision.confirm) return broken_look(view, decision);
  Status next = job.status;
  int status_writes = 0;
  for (const Write& write : decision.writes) {
    const auto* const status = std::get_if<WriteStatus>(&write);
    if (!status) continue;
    if (++status_writes > 1) return "two status writes";
    const bool is_held = job.holds_outbox && is_terminal(job.status.phase);
    if (job.deleting && !is_held) return "writes the status of a job that is being deleted";
    if (const std::string why = broken_status_write(view, *status); !why.empty()) return why;
    next = status->status;
  }
  if (const std::string why = outbox_trouble(view, next, now); !why.empty()) return why;
  if (!next.outbox.empty() && job.deleting == false &&
      std::any_of(decision.writes.begin(), decision.writes.end(),
                  [](const Write& write) { return std::holds_alternative<DeleteJob>(write); })) {
    return "S23 Told: a job's time to live is over before its targets were told";
  }
  if (const std::string why = broken_order(view, decision, next); !why.empty()) return why;
  if (const std::string why = broken_pod_write(view, decision, next); !why.empty()) return why;
  if (const std::string why = broken_creations(view, decision, next); !why.empty()) return why;
  if (const std::string why = broken_queueing(view, decision, next); !why.empty()) return why;
  if (const std::string why = broken_places(view, decision, next); !why.empty()) return why;
  // What is new after a live look has to wait for the next one.
  if (decision.writes.empty() && !view.observed.looked() && decision.wake_after &&
      *decision.wake_after <= Duration::zero()) {
    return "hot loop: nothing to do, and look again at once";
  }
  const bool waits_for_events =
      job.deleting || is_terminal(next.phase) || next.phase == Phase::kSuspended;
  if (!decision.wake_after && !waits_for_events) {
    return "stuck: nothing to do, and no time to look again";
  }
  const bool overdue =
      next.waiting && next.waiting->deadline && *next.waiting->deadline < now - seconds(3);
  const bool soon = decision.wake_after && *decision.wake_after <= seconds(1);
  if (overdue && decision.writes.empty() && !soon && !job.deleting) {
    return "the deadline that it tells has long passed";
  }
  return "";
}

}  // namespace holdfast::reconciler::testing
