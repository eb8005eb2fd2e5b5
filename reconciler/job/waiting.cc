// The phases in which no attempt runs: (none), Pending, Backoff, Suspended, Cancelling and the
// terminal ones.
#include <algorithm>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/phases.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/liveness.h"

namespace holdfast::reconciler {
namespace {

WriteStatus start_write(const Context& context) {
  WriteStatus write;
  write.status = context.job.status;
  write.status.observed_generation = context.job.generation;
  return write;
}

// If no attempt runs, a cancel, an overspent budget or the job's own time ends the job.
bool end_idle(const Context& context, Plan& plan) {
  WriteStatus write = start_write(context);
  if (context.spec.cancel) {
    const bool can_wait = write.status.phase != Phase::kNone;
    if (can_wait && any_pod_lives(context)) {
      start_cancelling(context, write.status);
    } else {
      finish_cancelled(context, write.status);
      write.events.push_back(Event{false, "Cancelled", "Finish", "the job was cancelled"});
    }
    plan.write(std::move(write));
    return true;
  }
  auto failure = spent_budget(context.spec, write.status);
  const auto deadline = active_deadline(context);
  if (!failure && deadline) {
    if (context.now >= *deadline) {
      failure = std::pair<Reason, std::string>(Reason::kDeadlineExceeded, kJobDeadlineMessage);
    } else {
      plan.wake_at(*deadline);
    }
  }
  if (!failure) return false;
  finish_failed(context, write.status, failure->first, failure->second);
  write.events.push_back(Event{true, to_string(failure->first), "Finish", failure->second});
  plan.write(std::move(write));
  return true;
}

// podReplacementPolicy Failed: the old pod must have ended, wherever it is.
void wait_for_old_pod(const Context& context, Plan& plan) {
  Status status = context.job.status;
  const auto& told = status.waiting;
  const bool is_told = told && told->reason == Reason::kOldPodNotEnded;
  const Time since = is_told ? told->since.value_or(context.now) : context.now;
  const Time stalled_at = since + context.spec.start_deadline;
  if (status.phase == Phase::kNone) status.phase = Phase::kPending;
  status.waiting = old_pod_waiting(context);
  if (context.now >= stalled_at) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else {
    plan.wake_at(stalled_at);
  }
  for (const PodView& pod : context.view.pods) {
    const auto node = context.view.observed.nodes.find(pod.node_name);
    if (node == context.view.observed.nodes.end() || !node->second.missing_for) continue;
    if (!pod_lives(context, pod)) continue;
    plan.wake_in(context.spec.lost_after - *node->second.missing_for);
  }
  plan.inform(std::move(status));
}

// The clock follows the API server's and may go back slightly.
constexpr seconds kClockNoise{2};

// No back-off is longer than maxSeconds, plus kLongestSpread after an outage. If the recorded time
// is later, somebody edited it or lowered maxSeconds. Then the longest back-off counts from now.
std::optional<Time> end_of_backoff(const Context& context) {
  const std::optional<Time>& recorded = context.job.status.run().next_attempt_time;
  const auto& waiting = context.job.status.waiting;
  const bool spread = waiting && waiting->reason == Reason::kRestartsSpread;
  const seconds longest = context.spec.retry_backoff.max + (spread ? kLongestSpread : seconds(0));
  if (!recorded || *recorded - context.now <= longest + kClockNoise) return recorded;
  return context.now + longest;
}

// If creations are quick, even many waiting jobs wait only briefly, and a status write for each
// would make all wait longer. So the wait is reported only if the namespace's creations hang, or
// after a minute.
constexpr seconds kTurnNotice{5};
constexpr seconds kTurnPatience{60};
// How often a moving queue is checked, because it may stop.
constexpr seconds kTurnLook{20};
// A reported deadline is overdue for at most this long.
constexpr seconds kOverdueNotice{1};

Duration until_turn_is_told(const Context& context, const TurnWait& wait) {
  const Duration patience = kTurnPatience - wait.waited;
  if (told_deadline_has_passed(context)) {
    return std::min<Duration>(patience, kOverdueNotice - wait.waited);
  }
  return std::min(patience, kTurnNotice - std::min(wait.waited, wait.since_turn));
}

void tell_of_turn(const Context& context, Plan& plan) {
  Status status = context.job.status;
  const TurnWait wait = context.view.observed.turn_wait.value_or(TurnWait());
  const bool is_told = status.waiting && status.waiting->reason == Reason::kPodCreationQueued;
  const Duration left = until_turn_is_told(context, wait);
  if (!is_told && left > Duration::zero()) {
    plan.wake_in(wait.waited < kTurnNotice ? left : std::max<Duration>(left, kTurnLook));
    return;
  }
  if (status.phase == Phase::kNone) status.phase = Phase::kPending;
  status.waiting = turn_waiting(context, status);
  plan.inform(std::move(status));
}

}  // namespace

void decide_ready(const Context& context, Plan& plan) {
  if (end_idle(context, plan)) return;
  const Status& status = context.job.status;
  if (context.spec.suspend) {
    WriteStatus write = start_write(context);
    suspend(context, write.status);
    plan.write(std::move(write));
    return;
  }
  const std::optional<Time> due = end_of_backoff(context);
  if (due && context.now < *due) {
    plan.wake_at(*due);
    Status waits = status;  // observedGeneration, and activeDeadlineSeconds may have changed
    waits.runs.front().next_attempt_time = due;
    const auto deadline = active_deadline(context);
    if (waits.waiting) waits.waiting->deadline = deadline ? std::min(*deadline, *due) : *due;
    plan.inform(std::move(waits));
    return;
  }
  if (context.spec.pod_replacement == PodReplacementPolicy::kFailed) {
    if (any_pod_lives(context)) {
      wait_for_old_pod(context, plan);
      return;
    }
    // The pods' watch may lag behind the job's, and somebody may have removed labels.
    if (!context.view.seen(0).observed.confirmed && !status.run().pod_name.empty()) {
      plan.confirm();
      return;
    }
  }
  if (!context.view.observed.may_create) {
    plan.await_creation();
    tell_of_turn(context, plan);
    return;
  }
  WriteStatus write = start_write(context);
  start_attempt(context, write.status);
  plan.write(std::move(write));
}

void decide_suspended(const Context& context, Plan& plan) {
  if (end_idle(context, plan)) return;
  if (context.spec.suspend) {
    plan.inform(context.job.status);
    return;
  }
  WriteStatus write = start_write(context);
  resume(context, write.status);
  plan.write(std::move(write));
}

namespace {

// For a pod that is not deleted yet. The same decision deletes it, and the answer changes the view,
// unless a policy forbids the deletion.
Duration untold_left(const Context& context) {
  const Observed& observed = context.view.observed;
  return context.spec.lost_after - observed.cancelling_for;
}

}  // namespace

void decide_cancelling(const Context& context, Plan& plan) {
  std::optional<Duration> left;  // until the last pod is given up
  const PodView* slowest = nullptr;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod) || !pod_lives(context, pod)) continue;
    const Duration pod_left = overstay_left(context, pod).value_or(untold_left(context));
    if (!left || pod_left > *left) {
      left = pod_left;
      slowest = &pod;
    }
    const auto node = context.view.observed.nodes.find(pod.node_name);
    if (node != context.view.observed.nodes.end() && node->second.missing_for) {
      plan.wake_in(context.spec.lost_after - *node->second.missing_for);
    }
  }
  if (left && *left > Duration::zero()) {
    Status status = context.job.status;
    status.waiting = Waiting{Reason::kPodTerminating,
                             "the job was cancelled; pod " + slowest->name + " is being stopped",
                             "the job is Cancelled when the pod has ended, or at waiting.deadline",
                             context.now + *left};
    plan.wake_in(*left);
    plan.inform(std::move(status));
    return;
  }
  if (!context.view.seen(0).observed.confirmed && !context.job.status.run().pod_name.empty()) {
    plan.confirm();
    return;
  }
  WriteStatus write = start_write(context);
  if (left) {
    write.orphan_class = OrphanClass::kCancelDeadWorker;
    write.trouble_for = std::max(Duration::zero(), -*left);
  }
  finish_cancelled(context, write.status);
  write.events.push_back(Event{false, "Cancelled", "Finish", "the job was cancelled"});
  plan.write(std::move(write));
}

void decide_finished(const Context& context, Plan& plan) {
  const Status& status = context.job.status;
  if (context.spec.ttl_after_finished && status.completion_time) {
    const Time expiry = *status.completion_time + *context.spec.ttl_after_finished;
    if (context.now >= expiry) {
      plan.decision().writes.emplace_back(DeleteJob{});
      return;
    }
    plan.wake_at(expiry);
  }
  plan.inform(status);  // observedGeneration
}

}  // namespace holdfast::reconciler
