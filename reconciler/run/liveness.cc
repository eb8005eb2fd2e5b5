#include "reconciler/run/liveness.h"

#include <algorithm>

#include "reconciler/run/heartbeat.h"
#include "reconciler/run/pod_times.h"
#include "reconciler/staleness.h"

namespace holdfast::reconciler {
namespace {

// After an outage of the API server the kubelets' reports may be this late. A pod that started
// meanwhile must not end as StartTimeout before they arrive.
constexpr seconds kReportGrace{15};
// How often to check whether the breaker still holds a verdict back.
constexpr seconds kBreakerLook{1};

// A node's silence is reported from here on.
Duration worth_reporting(const RunContext& context) {
  return std::max<Duration>(context.spec.lost_after / 2, kNodeHeard);
}

Limit lost(Reason reason, std::string message, OrphanClass orphan_class, Duration left,
           Duration trouble_for) {
  Limit limit;
  limit.verdict.outcome = Outcome::kLost;
  limit.verdict.reason = reason;
  limit.verdict.message = std::move(message);
  limit.verdict.orphan_class = orphan_class;
  limit.left = left;
  limit.trouble_for = trouble_for;
  return limit;
}

void add_node_limits(const RunContext& context, const PodView& pod, std::vector<Limit>& limits) {
  const auto found = context.view.observed.nodes.find(pod.node_name);
  if (found == context.view.observed.nodes.end()) return;
  const NodeObservation& node = found->second;
  const seconds window = context.spec.lost_after;
  if (node.missing_for) {
    limits.push_back(lost(Reason::kNodeGone,
                          "node " + pod.node_name + " has not existed for " + in_seconds(window),
                          OrphanClass::kNodeGone, window - *node.missing_for, *node.missing_for));
  }
  // Only the kubelet is silent: the node's worker still renews.
  if (node.silent_for && !heartbeat_is_fresh(context, pod)) {
    // Until its end mark the worker itself renewed. The kubelet's window starts then.
    const auto& ended_for = context.seen.observed.lease.ended_for;
    const Duration most = holds_lease(context, pod) && ended_for ? *ended_for : Duration::max();
    const Duration silent_for = std::min(*node.silent_for, most);
    const Duration allowed = silent_node_window(context, node);
    limits.push_back(lost(Reason::kNodeSilent,
                          "node " + pod.node_name +
                              (node.has_lease ? " has not renewed its Lease for "
                                              : "'s Ready condition has been Unknown for ") +
                              in_seconds(allowed),
                          OrphanClass::kNodeSilent, allowed - silent_for, silent_for));
    // After an outage the window starts again, and whoever lives has this long to renew.
    const Duration unheard_for = std::max(silent_for, std::min(node.unheard_for, most));
    const Duration notice =
        std::max<Duration>(worth_reporting(context) - unheard_for,
                           std::min<Duration>(worth_reporting(context), kFirstLook) - silent_for);
    const Duration window_left = window - silent_for;
    limits.back().quiet = notice > Duration::zero();
    if (notice > Duration::zero()) {
      if (!node.is_heard) limits.back().look_in = notice;
    } else if (node.breaker) {
      limits.back().look_in = std::max<Duration>(window_left, kBreakerLook);
    }
  }
}

Duration watched_left(const RunContext& context, Duration window) {
  return std::min<Duration>(window, kReportGrace) - context.view.observed.live_for;
}

// A pod without a node waits without limit, unless the user has set one.
void add_schedule_limit(const RunContext& context, const PodView& pod, std::vector<Limit>& limits) {
  if (!context.spec.schedule_deadline) return;
  const seconds window = *context.spec.schedule_deadline;
  Limit limit;
  limit.verdict.outcome = Outcome::kStartTimeout;
  limit.verdict.reason = Reason::kStartTimeout;
  limit.verdict.message =
      "no node had the pod " + in_seconds(window) + " after its creation (scheduleDeadlineSeconds)";
  limit.verdict.message += why_not_running(context);
  limit.verdict.orphan_class = OrphanClass::kPodNeverStarted;
  limit.trouble_for = asked_at(context) - pod.created;
  limit.left = std::max(window - limit.trouble_for, watched_left(context, window));
  limits.push_back(std::move(limit));
}

// The limit for a pod's first container counts from its binding to a node. The limit for each later
// container counts from when it was seen to be its turn: an image after an init container may be
// missing too.
void add_start_limit(const RunContext& context, const PodView& pod, std::vector<Limit>& limits) {
  // A worker that renews the Lease has started, even if its kubelet has not reported that.
  const bool worker_spoke =
      worker_is_starting(pod) && holds_lease(context, pod) && context.seen.lease->renewed;
  const bool started = has_started(context, pod);
  const bool taken_back = start_is_taken_back(context, pod);
  const bool stands_still = taken_back || pod.stands_still();
  if (started && (!stands_still || worker_spoke)) return;
  if (!started && pod.placement() != Placement::kBound) {
    return add_schedule_limit(context, pod, limits);
  }
  const seconds window = context.spec.start_deadline;
  const Duration age =
      started ? context.seen.observed.still_for : asked_at(context) - placed_since(context, pod);
  Limit limit;
  limit.verdict.outcome = Outcome::kStartTimeout;
  limit.verdict.reason = Reason::kStartTimeout;
  limit.verdict.message = taken_back ? "the pod had run, and its kubelet told of no container for "
                          : started  ? "the pod's next container did not start for "
                                     : "the pod had a node and no container ran for ";
  limit.verdict.message += in_seconds(window) + why_not_started(pod);
  limit.verdict.orphan_class = OrphanClass::kPodNeverStarted;
  limit.left = std::max(window - age, watched_left(context, window));
  limit.trouble_for = age;
  limits.push_back(std::move(limit));
}

// When the attempt's own time began. It excludes the wait for the job's Lease, which has its own
// bound (heartbeat.cc), unless the worker ended before the grant.
std::optional<Time> run_began(const RunContext& context, const PodView& pod) {
  std::optional<Time> start = attempt_start(context, pod);
  if (!start) start = context.run.start_time;
  if (!start || !context.spec.heartbeat) return start;
  if (holds_lease(context, pod)) {
    return std::max(*start, context.seen.lease->acquired.value_or(*start));
  }
  return worker_is_stopped(pod) ? start : std::nullopt;
}

void add_attempt_limit(const RunContext& context, const PodView& pod, std::vector<Limit>& limits) {
  if (!context.spec.attempt_deadline || !has_started(context, pod)) return;
  const std::optional<Time> start = run_began(context, pod);
  if (!start) return;
  Limit limit;
  limit.verdict.outcome = Outcome::kDeadlineExceeded;
  limit.verdict.reason = Reason::kAttemptDeadlineExceeded;
  limit.verdict.message = "the attempt ran longer than attemptDeadlineSeconds (" +
                          in_seconds(*context.spec.attempt_deadline) + ")";
  limit.verdict.orphan_class = OrphanClass::kAttemptTooLong;
  limit.left = *start + *context.spec.attempt_deadline - asked_at(context);
  limit.trouble_for = std::max(Duration::zero(), -limit.left);
  limits.push_back(std::move(limit));
}

const ContainerView* waiting_container(const PodView& pod) {
  for (const ContainerView& container : pod.containers) {
    if (!container.waiting_reason.empty() && !container.being_created) return &container;
  }
  return nullptr;
}

std::string attempt_text(const RunContext& context) {
  return "attempt " + std::to_string(context.run.attempt);
}

std::string gated_text(const PodView& pod) {
  return (pod.unschedulable.empty() ? "the pod is gated" : pod.unschedulable) + ": " + pod.gates;
}

// What a pod without a node waits for. Only a limit lets time alone end the attempt.
Waiting describe_unbound(const RunContext& context, const PodView& pod) {
  Waiting waiting;
  waiting.next_action = attempt_text(context) + " goes on once a node has its pod";
  switch (pod.placement()) {
    case Placement::kGated:
      waiting.reason = Reason::kPodGated;
      waiting.message = gated_text(pod);
      waiting.next_action =
          attempt_text(context) + " goes on once the gates of its pod are removed";
      waiting.since = placed_since(context, pod);
      break;
    case Placement::kUnschedulable:
      waiting.reason = Reason::kPodUnschedulable;
      waiting.message = pod.unschedulable;
      waiting.since = placed_since(context, pod);
      break;
    default:
      waiting.reason = Reason::kPodStarting;
      waiting.message = "pod " + pod.name + " is being scheduled";
      if (unseen_left(context, pod) > Duration::zero()) break;
      waiting.reason = Reason::kNoScheduler;
      waiting.message = "no scheduler has reported on pod " + pod.name + "; its schedulerName is " +
                        (pod.scheduler.empty() ? "not set" : pod.scheduler);
      waiting.next_action = "check that a scheduler of that name runs; " + waiting.next_action;
  }
  return waiting;
}

// What a pod with a node waits for until its first, or its next, container runs.
Waiting describe_start(const RunContext& context, const PodView& pod, Duration left) {
  Waiting waiting;
  waiting.reason = Reason::kPodStarting;
  waiting.message = "pod " + pod.name + " starts on node " + pod.node_name;
  if (const ContainerView* const container = waiting_container(pod)) {
    waiting.reason = AnyReason(container->waiting_reason);
    waiting.message = "container " + container->name + ": " + container->waiting_message;
  }
  const bool taken_back = start_is_taken_back(context, pod);
  waiting.next_action = attempt_text(context) + " ends as StartTimeout unless " +
                        (taken_back           ? "a container runs again"
                         : !pod.started()     ? "a container has run"
                         : pod.stands_still() ? "its next container runs"
                                              : "its agent has renewed the job's Lease") +
                        " by then";
  waiting.deadline = asked_at(context) + left;
  return waiting;
}

// The limit that ends first, or the deadline. Quiet limits are normally renewed before they end.
void add_first_deadline(const RunContext& context, const std::vector<Limit>& limits,
                        Waiting& waiting) {
  for (const Limit& limit : limits) {
    const Time when = asked_at(context) + limit.left;
    if (limit.quiet || (waiting.deadline && *waiting.deadline <= when)) continue;
    waiting.next_action = attempt_text(context) + " ends as " + to_string(limit.verdict.outcome);
    waiting.deadline = when;
  }
  if (const auto deadline = context.deadline;
      deadline && (!waiting.deadline || *deadline < *waiting.deadline)) {
    waiting.deadline = deadline;
    waiting.next_action = context.job.stages.empty() ? "the job fails as DeadlineExceeded"
                                                     : "the stage fails as DeadlineExceeded";
  }
}

}  // namespace

Duration unseen_left(const RunContext& context, const PodView& pod) {
  return placed_since(context, pod) + context.spec.start_deadline - context.now;
}

std::string in_seconds(Duration duration) {
  return std::to_string(std::chrono::floor<seconds>(duration).count()) + " s";
}

std::string why_not_started(const PodView& pod) {
  const ContainerView* found = waiting_container(pod);
  for (const ContainerView& container : pod.containers) {
    if (!found && !container.waiting_reason.empty()) found = &container;
  }
  if (!found) return "";
  const std::string text = "; container " + found->name + ": " + found->waiting_reason;
  return found->waiting_message.empty() ? text : text + ": " + found->waiting_message;
}

std::string why_not_running(const RunContext& context) {
  const PodView* const pod = context.pod;
  if (!pod) {
    const auto& refusal = context.seen.observed.refusal;
    const std::string& why = refusal ? refusal->message : context.run.refused;
    return why.empty() ? "" : "; the API server refused the pod: " + why;
  }
  if (pod->slot || pod->ended()) return "";
  if (pod->placement() == Placement::kGated) return "; " + gated_text(*pod);
  if (pod->placement() == Placement::kUnschedulable) return "; " + pod->unschedulable;
  const bool waits = waiting_container(*pod) || !has_started(context, *pod);
  return waits ? why_not_started(*pod) : "";
}

Duration silent_node_window(const Context& context, const NodeObservation& node) {
  return (node.breaker ? 2 : 1) * context.spec.lost_after;
}

std::optional<Duration> overstay_left(const Context& context, const PodView& pod) {
  if (!pod.deletion) return std::nullopt;
  // Seen for the whole window, not only dated: after an outage the window starts again.
  const Duration dated = asked_at(context) - *pod.deletion;
  return context.spec.lost_after - std::min<Duration>(dated, pod.going_for);
}

std::vector<Limit> limits_on(const RunContext& context, const PodView& pod) {
  std::vector<Limit> limits;
  if (const auto left = overstay_left(context, pod)) {
    limits.push_back(lost(Reason::kPodStuckTerminating,
                          "the pod was deleted and had not ended " +
                              in_seconds(context.spec.lost_after) + " after its grace",
                          OrphanClass::kPodStuckTerminating, *left,
                          std::max<Duration>(Duration::zero(), asked_at(context) - *pod.deletion)));
  } else {
    add_start_limit(context, pod, limits);
  }
  if (!pod.node_name.empty()) add_node_limits(context, pod, limits);
  add_heartbeat_limits(context, pod, limits);
  add_attempt_limit(context, pod, limits);
  return limits;
}

Waiting describe(const RunContext& context, const PodView& pod, const std::vector<Limit>& limits) {
  const auto limit_by = [&](Reason reason) -> const Limit* {
    for (const Limit& limit : limits) {
      if (limit.verdict.reason == reason) return &limit;
    }
    return nullptr;
  };
  const auto left = [&](Reason reason) -> std::optional<Duration> {
    const Limit* const limit = limit_by(reason);
    return limit ? std::optional(limit->left) : std::nullopt;
  };
  const auto is_worth_reporting = [&](Reason reason) {
    const Limit* const limit = limit_by(reason);
    return limit && !limit->quiet;
  };
  const bool starts = left(Reason::kStartTimeout) &&
                      (!pod.started() || pod.stands_still() || worker_is_starting(pod));
  Waiting waiting;
  if (left(Reason::kNodeGone)) {
    waiting = {Reason::kNodeGone, "node " + pod.node_name + " does not exist",
               attempt_text(context) + " ends as Lost unless the node comes back",
               asked_at(context) + *left(Reason::kNodeGone)};
  } else if (is_worth_reporting(Reason::kNodeSilent)) {
    const bool has_lease = context.view.observed.nodes.at(pod.node_name).has_lease;
    waiting = {Reason::kNodeSilent,
               "node " + pod.node_name +
                   (has_lease ? " does not renew its Lease" : "'s Ready condition is Unknown"),
               attempt_text(context) + " ends as Lost unless the node renews it",
               asked_at(context) + *left(Reason::kNodeSilent)};
  } else if (pod.deletion) {
    waiting = {Reason::kPodTerminating, "pod " + pod.name + " was deleted and is being stopped",
               attempt_text(context) + " ends when the pod has, or as Lost",
               asked_at(context) + *left(Reason::kPodStuckTerminating)};
  } else if (!pod.started() && pod.placement() != Placement::kBound) {
    waiting = describe_unbound(context, pod);
  } else if (starts) {
    waiting = describe_start(context, pod, *left(Reason::kStartTimeout));
  } else if (const auto heartbeat = describe_heartbeat(context, pod, limits)) {
    waiting = *heartbeat;
  } else if (const ContainerView* const container = waiting_container(pod)) {
    waiting = {AnyReason(container->waiting_reason),
               "container " + container->name + ": " + container->waiting_message +
                   "; other containers of pod " + pod.name + " run",
               attempt_text(context) +
                   " ends when the pod does; no start deadline counts while a container runs",
               std::nullopt};
  } else {
    waiting = {Reason::kPodRunning, "pod " + pod.name + " runs on node " + pod.node_name,
               attempt_text(context) + " ends when the pod does", std::nullopt};
  }
  add_first_deadline(context, limits, waiting);
  return waiting;
}

}  // namespace holdfast::reconciler
