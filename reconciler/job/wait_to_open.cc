// No run of the job may open: what it says, and when it looks again.
#include <algorithm>

#include "reconciler/job/conditions.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/waiting.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"

namespace holdfast::reconciler {
namespace {

// The reported deadline follows activeDeadlineSeconds, which may have changed.
void wait_for_backoff(const Context& context, Time due, Plan& plan) {
  Status waits = context.job.status;
  bring_backoffs_forward(context, waits);
  if (waits.waiting) {
    const AnyReason& reported = waits.waiting->reason;
    if (reported == Reason::kPaused || reported == Reason::kPodCreationQueued ||
        reported == Reason::kOldPodNotEnded || reported == Reason::kPodCreationUnanswered ||
        reported == Reason::kWorkerStopping || reported == Reason::kWorkerAwaited ||
        reported == Reason::kAwaitsEmptyWorker || reported == Reason::kPoolMissing ||
        reported == Reason::kNotKnownToThisVersion || reported == Reason::kGuardMissing ||
        waits.says_queued()) {
      waits.waiting = backoff_waiting(context, due);
    }
    waits.waiting->deadline = context.deadline ? std::min(*context.deadline, due) : due;
  }
  plan.inform(std::move(waits));
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

Duration until_turn_is_reported(const Context& context, const TurnWait& wait) {
  const Duration patience = kTurnPatience - wait.waited;
  if (reported_deadline_has_passed(context)) {
    return std::min<Duration>(patience, kOverdueNotice - wait.waited);
  }
  return std::min(patience, kTurnNotice - std::min(wait.waited, wait.since_turn));
}

// A turn to create a pod, or a slot of a worker.
void report_turn(const Context& context, const TurnWait& wait, Waiting words, Plan& plan) {
  Status status = context.job.status;
  const bool is_reported = status.waiting && status.waiting->reason == words.reason;
  // A job that says that it is queued would be admitted again.
  const bool has_no_pool =
      words.reason == Reason::kPoolMissing || words.reason == Reason::kNotKnownToThisVersion;
  const bool leaves_queue =
      has_no_pool && (context.view.observed.permit.admitted || status.says_queued());
  const Duration left = leaves_queue ? Duration::zero() : until_turn_is_reported(context, wait);
  if (!is_reported && left > Duration::zero()) {
    // Seldom, but the minute is kept.
    const Duration seldom = std::min<Duration>(kTurnLook, kTurnPatience - wait.waited);
    plan.wake_in(wait.waited < kTurnNotice ? left : std::max(left, seldom));
    return;
  }
  if (status.phase == Phase::kNone) status.phase = Phase::kPending;
  if (words.reason == Reason::kPoolMissing) {
    set_condition(status, "Stalled", true, words.reason.text(), words.message, context.now);
  } else if (words.reason == Reason::kWorkerAwaited || words.reason == Reason::kAwaitsEmptyWorker) {
    clear_condition(status, "Stalled", words.reason.text(), context.now);
  }
  status.waiting = std::move(words);
  plan.inform(std::move(status));
}

// A queue with free permits admits a job within moments, and then it needs no word.
constexpr seconds kQueueNotice{1};
// The queue wakes its jobs. One that has said so looks again for itself now and then.
constexpr seconds kQueueLook{300};

void report_queue(const Context& context, Plan& plan) {
  Status status = context.job.status;
  const Waiting waiting = queue_waiting(context);
  const Duration left = kQueueNotice - context.view.observed.permit.waited;
  if (!status.says_queued() && left > Duration::zero()) return plan.wake_in(left);
  if (status.phase == Phase::kNone) status.phase = Phase::kPending;
  status.waiting = waiting;
  if (waiting.reason == Reason::kQueueMissing) {
    set_condition(status, "Stalled", true, waiting.reason.text(), waiting.message, context.now);
  } else {
    clear_condition(status, "Stalled", "Queued", context.now);
  }
  plan.inform(std::move(status));
  plan.wake_in(kQueueLook);
}

void report_version_wait(const Context& context, Plan& plan) {
  Status status = context.job.status;
  settle_phase(context, status);
  status.waiting = version_waiting(context, active_deadline(context, status));
  plan.inform(std::move(status));
}

void report_guard(const Context& context, Plan& plan) {
  if (context.view.observed.guard.fault.empty()) return;  // the job is told
  Status status = context.job.status;
  settle_phase(context, status);
  status.waiting = guard_waiting(context, active_deadline(context, status));
  plan.inform(std::move(status));
}

void report_pause(const Context& context, Plan& plan) {
  Status status = context.job.status;
  settle_phase(context, status);
  status.waiting = paused_waiting(context);
  plan.inform(std::move(status));
}

}  // namespace

void wait_for_old_pod(const Context& context, Plan& plan) {
  Status status = context.job.status;
  const auto& reported = status.waiting;
  const Waiting words = old_pod_waiting(context);
  const bool is_reported = reported && reported->reason == words.reason;
  const Time since = is_reported ? reported->since.value_or(context.now) : context.now;
  const Time stalled_at = since + context.spec.start_deadline;
  if (status.phase == Phase::kNone) status.phase = Phase::kPending;
  status.waiting = words;
  if (context.now >= stalled_at) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else {
    plan.wake_at(stalled_at);
  }
  if (words.reason == Reason::kPodCreationUnanswered) plan.wake_at(*words.deadline);
  for (const PodView& pod : context.view.pods) {
    const NodeObservation* const node = node_of(context, pod);
    if (!node || !node->missing_for || !pod_lives(context, pod)) continue;
    plan.wake_in(context.spec.lost_after - *node->missing_for);
  }
  plan.inform(std::move(status));
}

void wait_to_open(const Context& context, const Opening& opening, Plan& plan) {
  switch (opening.wait) {
    case Opening::Wait::kNothing:
    case Opening::Wait::kConfirm:
      return;
    case Opening::Wait::kPaused:
      return report_pause(context, plan);
    case Opening::Wait::kVersion:
      return report_version_wait(context, plan);
    case Opening::Wait::kGuard:
      return report_guard(context, plan);
    case Opening::Wait::kBackoff:
      return wait_for_backoff(context, *opening.due, plan);
    case Opening::Wait::kOldPod:
      return wait_for_old_pod(context, plan);
    case Opening::Wait::kPermit:
      return report_queue(context, plan);
    case Opening::Wait::kTurn:
      return report_turn(context, context.view.observed.turn_wait.value_or(TurnWait()),
                         turn_waiting(context, context.job.status), plan);
    case Opening::Wait::kWorker:
      return report_turn(context, context.view.observed.pool.wait,
                         worker_waiting(context, context.job.status), plan);
    case Opening::Wait::kEmptyWorker:
      return report_turn(context, context.view.observed.pool.wait,
                         empty_worker_waiting(context, context.job.status), plan);
  }
}

}  // namespace holdfast::reconciler
