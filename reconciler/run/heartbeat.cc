#include "reconciler/run/heartbeat.h"

#include <algorithm>

#include "core/invariant.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/pod_times.h"
#include "reconciler/staleness.h"

namespace holdfast::reconciler {
namespace {

// The unknown holder of a Lease that no longer exists. Nothing can prove that it is stopped.
constexpr const char* kUnknownHolder = "unknown";

const ContainerView* worker_of(const PodView& pod) {
  for (const ContainerView& container : pod.containers) {
    if (container.worker) return &container;
  }
  return nullptr;
}

bool is_stopped(const Context& context, const LeaseObservation& seen, const std::string& holder) {
  if (holder.empty() || seen.granted_stopped) return true;
  const auto& pods = context.view.pods;
  return std::any_of(pods.begin(), pods.end(), [&](const PodView& pod) {
    // The name first: there may be thousands of pods.
    return holder.starts_with(pod.name) && holder_identity(pod) == holder && worker_is_stopped(pod);
  });
}

bool is_taken(const LeaseView& lease, std::int64_t attempt) {
  return lease.holder.empty() && lease.attempt == attempt;
}

// The holder has not renewed the Lease since its grant. So the child has not run, because it starts
// only after an acknowledged renewal. A later renewal would make a write on this version a
// conflict.
bool never_ran(const LeaseView& lease) {
  return !lease.holder.empty() && lease.holder == lease.granted && !lease.renewed;
}

// True if this process recorded the current attempt, has held its shard since, and has not written
// its Lease.
bool was_never_written(const RunObserved& observed) {
  return observed.own_intent && !observed.took_over && !observed.lease_asked;
}

// The pod runs, but its agent has never renewed: it has no grant yet, or it was silent from the
// start.
Limit never_renewed(const RunContext& context, const PodView& pod) {
  const auto& lease = context.seen.lease;
  const bool holds = holds_lease(context, pod);
  const seconds window = context.spec.start_deadline;
  const Time bound = placed_since(context, pod);
  const Time since = holds && lease->acquired ? std::max(bound, *lease->acquired) : bound;
  Limit limit;
  limit.verdict.outcome = Outcome::kStartTimeout;
  limit.verdict.reason = Reason::kStartTimeout;
  limit.verdict.message = "the pod's agent had not renewed the job's Lease " + in_seconds(window) +
                          (holds ? " after it was granted" : " after it could be granted");
  if (worker_is_starting(pod)) limit.verdict.message += why_not_started(pod);
  limit.verdict.orphan_class = OrphanClass::kPodNeverStarted;
  limit.trouble_for = asked_at(context) - since;
  const Duration grant = holds ? Duration::zero() : context.spec.heartbeat->lease_duration;
  // An agent that was cut off retries at once, and does not need the whole duration.
  const Duration watched =
      std::min<Duration>({window, context.spec.heartbeat->lease_duration, kFirstLook}) -
      context.view.observed.live_for;
  limit.left = std::max(window + grant - limit.trouble_for, watched);
  return limit;
}

Limit silent(const RunContext& context, const PodView& pod) {
  const LeaseObservation& seen = context.seen.observed.lease;
  const seconds window = context.spec.heartbeat->lease_duration;
  const Duration allowed = seen.breaker ? 2 * window : window;
  Limit limit;
  limit.verdict.outcome = Outcome::kLost;
  limit.verdict.reason = Reason::kHolderSilent;
  limit.verdict.message = "the agent in pod " + pod.name + " has not renewed the job's Lease for " +
                          in_seconds(allowed);
  limit.verdict.orphan_class = OrphanClass::kHolderSilent;
  limit.left = allowed - seen.silent_for;
  limit.trouble_for = seen.silent_for;
  // An agent renews after D/3, and one renewal may be lost.
  const Duration notice = window * 3 / 4 - seen.silent_for;
  limit.quiet = notice > Duration::zero();
  if (limit.quiet) limit.look_in = notice;
  return limit;
}

Limit stalled(const RunContext& context) {
  const LeaseObservation& seen = context.seen.observed.lease;
  const seconds window = *context.spec.heartbeat->progress_deadline;
  Limit limit;
  limit.verdict.outcome = Outcome::kHung;
  limit.verdict.reason = Reason::kNoProgress;
  limit.verdict.message = "the worker lives and has made no progress for " + in_seconds(window);
  limit.verdict.orphan_class = OrphanClass::kHolderHung;
  limit.left = window - seen.stalled_for;
  // Progress shows with the next renewal. So the verdict waits for a renewal from after the
  // deadline that shows none, or for the time by which that renewal must have been sent.
  if (context.seen.lease->progress_age < window)
    limit.left += context.spec.heartbeat->lease_duration;
  limit.trouble_for = seen.stalled_for;
  const Duration notice = window / 2 - seen.stalled_for;
  limit.quiet = notice > Duration::zero();
  if (limit.quiet) limit.look_in = notice;
  return limit;
}

}  // namespace

std::string holder_identity(const PodView& pod) { return pod.name + "/" + pod.uid; }

bool worker_is_stopped(const PodView& pod) {
  if (pod.node_name.empty()) return pod.deletion.has_value();
  const ContainerView* const worker = worker_of(pod);
  return worker && worker->terminated && worker->terminated->was_seen &&
         ended_for_good(pod, *worker);
}

bool worker_is_starting(const PodView& pod) {
  const ContainerView* const worker = worker_of(pod);
  return worker && !worker->started;
}

bool holds_lease(const RunContext& context, const PodView& pod) {
  const auto& lease = context.seen.lease;
  return context.spec.heartbeat && lease && lease->attempt == context.run.attempt &&
         lease->holder == holder_identity(pod);
}

bool may_have_held_lease(const RunContext& context, const PodView& pod) {
  if (!context.spec.heartbeat) return true;
  const auto& lease = context.seen.lease;
  if (!lease || lease->granted == kUnknownHolder) {
    return pod.uid == known_pod_uid(context.run, context.seen);
  }
  const std::string identity = holder_identity(pod);
  return lease->attempt == context.run.attempt &&
         (lease->holder == identity || lease->granted == identity);
}

bool heartbeat_is_fresh(const RunContext& context, const PodView& pod) {
  return holds_lease(context, pod) && context.seen.lease->renewed && !context.seen.lease->ended &&
         context.seen.observed.lease.silent_for < context.spec.heartbeat->lease_duration;
}

bool is_worked_on(const LeaseView& lease, const Status& status, const PodView* pod) {
  const bool runs = std::any_of(status.runs.begin(), status.runs.end(), [&](const Run& run) {
    return run.open() && run.attempt == lease.attempt;
  });
  return runs && (!pod || holder_identity(*pod) != lease.holder || !worker_is_stopped(*pod));
}

void add_heartbeat_limits(const RunContext& context, const PodView& pod,
                          std::vector<Limit>& limits) {
  if (!context.spec.heartbeat || !has_started(context, pod) || pod.deletion) return;
  // No more renewals come, with or without the end mark. Another container may still work.
  if (worker_is_stopped(pod)) return;
  if (!holds_lease(context, pod) || !context.seen.lease->renewed) {
    limits.push_back(never_renewed(context, pod));
    return;
  }
  if (context.seen.lease->ended) return;  // from now on pod and node decide
  limits.push_back(silent(context, pod));
  if (context.spec.heartbeat->progress_deadline) limits.push_back(stalled(context));
}

namespace {

const std::string& stage_name(const Context& context) {
  static const std::string kNone;
  const Status& status = context.job.status;
  return status.stages.empty() ? kNone : status.stages[status.stage].name;
}

// No attempt before this one can have had the Lease and still run. An earlier stage's may have had
// one of the same name. If it has succeeded with all its runs, their pods have ended.
bool is_first(const RunContext& context, const Run& next) {
  const Status& status = context.job.status;
  if (status.stage == 0) {
    return (context.spec.many_runs() ? next.attempts : next.attempt) == 1;
  }
  if (next.attempts != 1) return false;
  for (std::size_t position = 0; position < status.stage; ++position) {
    const Spec& spec = context.job.stages[position].spec;
    const bool same_name = spec.heartbeat && spec.many_runs() == context.spec.many_runs();
    const bool all_ended =
        status.stages[position].phase == StagePhase::kSucceeded && spec.success_policy.empty();
    if (same_name && !all_ended) return false;
  }
  return true;
}

// How long the last holder may go on: it may be of an earlier stage, with a longer Lease.
Duration longest_lease(const Context& context) {
  Duration longest = context.spec.heartbeat->lease_duration;
  for (std::size_t position = 0; position < context.job.status.stage; ++position) {
    const auto& heartbeat = context.job.stages[position].spec.heartbeat;
    if (heartbeat) longest = std::max<Duration>(longest, heartbeat->lease_duration);
  }
  return longest;
}

// The number is reported in powers of two, so that a worker that asks all day causes few writes.
Waiting describe_deferrals(const RunContext& context, const PodView& pod) {
  std::int64_t reported = 1;
  while (reported * 2 <= context.seen.lease->deferrals) reported *= 2;
  return Waiting{
      Reason::kDeferred,
      "the worker in pod " + pod.name + " has said \"not yet\" " +
          (reported == 1 ? "once" : "at least " + std::to_string(reported) + " times"),
      "its agent runs the command again in the same pod, after the deferSeconds of the rule",
      context.deadline};
}

}  // namespace

std::optional<Waiting> describe_heartbeat(const RunContext& context, const PodView& pod,
                                          const std::vector<Limit>& limits) {
  const std::string attempt = "attempt " + std::to_string(context.run.attempt);
  for (const Limit& limit : limits) {
    const Time then = asked_at(context) + limit.left;
    if (limit.quiet) continue;
    if (limit.verdict.reason == Reason::kHolderSilent) {
      return Waiting{Reason::kHolderSilent,
                     "the agent in pod " + pod.name + " does not renew the job's Lease",
                     attempt + " ends as Lost unless the agent renews it", then};
    }
    if (limit.verdict.reason == Reason::kNoProgress) {
      return Waiting{Reason::kNoProgress,
                     "the worker in pod " + pod.name + " lives and makes no progress",
                     attempt + " ends as Hung unless the program reports progress", then};
    }
    if (limit.verdict.reason != Reason::kStartTimeout) continue;
    const auto& refusal = context.seen.observed.lease_refusal;
    if (refusal && !holds_lease(context, pod)) {
      return Waiting{Reason::kLeaseWriteRefused, refusal->message,
                     "the operator retries the write every 5 to 30 s; " + attempt +
                         " ends as StartTimeout unless its agent has renewed it by then. Is "
                         "the namespace among the chart's workerNamespaces?",
                     then};
    }
    const auto& lease = context.seen.lease;
    if (lease && is_taken(*lease, context.run.attempt) && !lease->granted.empty()) {
      const Duration left = longest_lease(context) - context.seen.observed.lease.taken_for;
      return Waiting{Reason::kLeaseHeld,
                     "pod " + pod.name + " waits for the job's Lease: the pod that held it last (" +
                         lease->granted + ") may still run",
                     "the Lease is granted to it", asked_at(context) + left};
    }
    return Waiting{Reason::kHeartbeatAwaited,
                   "pod " + pod.name + " runs, and its agent has not renewed the job's Lease yet",
                   attempt + " ends as StartTimeout unless the agent renews it", then};
  }
  const bool has_deferred = holds_lease(context, pod) && context.seen.lease->deferrals > 0;
  return has_deferred ? std::optional(describe_deferrals(context, pod)) : std::nullopt;
}

void check_lease_write(const WriteLease& write, const Run& next, const PodView* pod,
                       const std::optional<LeaseView>& before) {
  invariant(write.attempt == next.attempt && write.run == next.index,
            "a Lease is handed to the attempt on record");
  invariant(!before || write.attempt >= before->attempt, "the attempt in a Lease never falls");
  if (write.holder.empty()) return;
  invariant(pod && pod->name == next.pod_name && !pod->uid.empty() &&
                write.holder == holder_identity(*pod),
            "a Lease is granted to the pod of the attempt on record");
}

namespace {

// The Lease that the run had before `completions` changed from or to 1; null: none. A stage of its
// own has Leases of its own (is_first()).
const LeaseOver* former_lease(const Context& context, std::int64_t index) {
  if (index != 0 || context.job.status.stage > 0) return nullptr;
  const std::int64_t name = context.spec.many_runs() ? kSingleLease : 0;
  const auto& over = context.view.leases_over;
  const auto found =
      std::find_if(over.begin(), over.end(), [&](const LeaseOver& one) { return one.run == name; });
  return found == over.end() ? nullptr : &*found;
}

// For how long a holder of this Lease may still act, once it is taken.
Duration holder_acts_for(const Context& context, const LeaseOver& over) {
  const LeaseView& lease = over.lease;
  if (never_ran(lease) || is_stopped(context, over.observed, lease.granted)) {
    return Duration::zero();
  }
  const Duration whole = longest_lease(context);
  return lease.holder.empty() ? whole - over.observed.taken_for : whole;
}

}  // namespace

LeaseStep leave_lease(const Context& context, const LeaseOver& over, const Status& next) {
  LeaseStep step;
  const LeaseView& lease = over.lease;
  const std::int64_t index = over.run == kSingleLease ? 0 : over.run;
  step.is_over = !context.spec.heartbeat || context.job.status.stage > 0 ||
                 is_terminal(next.phase) || next.completed.contains(index) ||
                 next.failed.contains(index);
  if (step.is_over) return step;
  const Duration left = holder_acts_for(context, over);
  if (left <= Duration::zero()) {
    // The next Lease of a run on record takes the checkpoint from it.
    const auto& runs = context.job.status.runs;
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const Run& one) { return one.index == index; });
    const auto position = static_cast<std::size_t>(run - runs.begin());
    step.is_over = run == runs.end() || context.view.seen(position).lease;
  } else if (lease.holder.empty()) {
    step.wake_after = left;
  } else {
    step.write = WriteLease{lease.uid,     lease.version, lease.attempt,    "",
                            lease.granted, over.run,      lease.checkpoint, lease.stage};
    step.write->over = true;
  }
  return step;
}

LeaseStep hand_over_lease(const RunContext& context, const Run& next) {
  LeaseStep step;
  if (!context.spec.heartbeat || !next.open()) return step;
  const auto& refusal = context.seen.observed.lease_refusal;
  if (refusal && refusal->retry_in > Duration::zero()) {
    step.wake_after = refusal->retry_in;
    return step;
  }
  const PodView* const pod = next.attempt == context.run.attempt ? context.pod : nullptr;
  const std::string holder = pod ? holder_identity(*pod) : "";
  const auto& lease = context.seen.lease;
  const LeaseOver* const former = former_lease(context, next.index);
  const Duration former_left = former ? holder_acts_for(context, *former) : Duration::zero();
  if (!lease) {
    if (!pod) return step;
    // A missing Lease may have had a holder, unless it was never written.
    const bool first = is_first(context, next) && was_never_written(context.seen.observed);
    step.write = WriteLease{
        "", 0, next.attempt, first ? holder : "", first ? holder : kUnknownHolder, next.index};
    step.write->stage = stage_name(context);
    if (former) step.write->checkpoint = former->lease.checkpoint;
    check_lease_write(*step.write, next, pod, lease);
    return step;
  }
  const bool taken = is_taken(*lease, next.attempt);
  // Already granted, or this view of the job is older than its Lease.
  if (!taken && lease->attempt >= next.attempt) return step;
  const bool unused = never_ran(*lease);
  const bool stopped = is_stopped(context, context.seen.observed.lease, lease->granted);
  const Duration left = longest_lease(context) - context.seen.observed.lease.taken_for;
  const bool is_free = stopped || unused || (taken && left <= Duration::zero());
  if (pod && is_free && former_left > Duration::zero()) {
    step.wake_after = former_left;
  } else if (pod && is_free) {
    step.write = WriteLease{lease->uid, lease->version, next.attempt, holder, holder, next.index};
  } else if (!taken && !stopped) {
    step.write = WriteLease{
        lease->uid, lease->version, next.attempt, "", unused ? "" : lease->granted, next.index};
  } else if (pod && taken) {
    step.wake_after = left;
  }
  if (step.write) {
    step.write->stage = stage_name(context);
    if (lease->stage == step.write->stage) step.write->checkpoint = lease->checkpoint;
    check_lease_write(*step.write, next, pod, lease);
  }
  return step;
}

}  // namespace holdfast::reconciler
