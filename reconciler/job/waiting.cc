// What a job does while no attempt of it runs: (none), Pending, Backoff, Suspended, Cancelling and
// the terminal phases.
#include <algorithm>
#include <functional>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/notifications.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/telling.h"
#include "reconciler/names.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/liveness.h"
#include "reconciler/run/slot.h"

namespace holdfast::reconciler {

WriteStatus start_write(const Context& context) {
  WriteStatus write;
  write.status = context.job.status;
  write.status.observed_generation = context.job.generation;
  bring_backoffs_forward(context, write.status);
  return write;
}

bool end_idle(const Context& context, Plan& plan) {
  WriteStatus write = start_write(context);
  if (context.spec.cancel) {
    if (plan.looks_at(unseen_runs(context))) return true;
    const bool can_wait = write.status.phase != Phase::kNone;
    // From Suspended a job goes on by being resumed or cancelled, not by starting its next stage.
    const bool has_next = write.status.phase == Phase::kSuspended && !context.job.stages.empty();
    if (can_wait && (has_next || any_pod_lives(context) || last_creation(context.view))) {
      start_cancelling(context, write.status);
    } else {
      finish_cancelled(context, write);
    }
    plan.write(std::move(write));
    return true;
  }
  forget_left_out_runs(context.spec, write.status);  // nothing that they have spent counts
  const auto reached = judge_job(context, {}, write.status);
  // Only an edited status makes a suspended job succeed. It is resumed first. So is one that would
  // go on with its next stage.
  const bool is_resumed_first = write.status.phase == Phase::kSuspended && reached &&
                                (reached->succeeds || !context.job.stages.empty());
  if (reached && !is_resumed_first) {
    // An attempt that has ended may still run in its pod or on its worker, and a pod may still be
    // created. While it is suspended, a job's end is not on record, because it may be resumed.
    const OpenCreation* const creation = last_creation(context.view);
    const bool may_come = creation && creation->left > Duration::zero();
    const auto due = may_come ? std::vector<std::int64_t>() : creations_to_look_at(context.view);
    if (plan.looks_at(unseen_runs(context), due)) return true;
    if (may_come) plan.wake_in(creation->left);
    const std::optional<PodsLeft> left = pods_to_await(context, plan);
    const bool waits = creation || (left && !left->given_up());
    if (waits && write.status.phase == Phase::kSuspended) return false;
    if (!waits) {
      finish(context, *reached, write);
    } else {
      record_end(context, *reached, write);
      write.status.waiting = stopping_waiting(context, *reached);
    }
    plan.write(std::move(write));
    return true;
  }
  if (context.deadline) plan.wake_at(*context.deadline);
  return false;
}

namespace {

// The told deadline follows activeDeadlineSeconds, which may have changed.
void wait_for_backoff(const Context& context, Time due, Plan& plan) {
  Status waits = context.job.status;
  bring_backoffs_forward(context, waits);
  if (waits.waiting) {
    const AnyReason& told = waits.waiting->reason;
    if (told == Reason::kPaused || told == Reason::kPodCreationQueued ||
        told == Reason::kOldPodNotEnded || told == Reason::kPodCreationUnanswered ||
        told == Reason::kWorkerStopping || told == Reason::kWorkerAwaited ||
        told == Reason::kAwaitsEmptyWorker || told == Reason::kPoolMissing ||
        told == Reason::kNotKnownToThisVersion || waits.says_queued()) {
      waits.waiting = backoff_waiting(context, due);
    }
    waits.waiting->deadline = context.deadline ? std::min(*context.deadline, due) : due;
  }
  plan.inform(std::move(waits));
}

// podReplacementPolicy Failed: the old pod must have ended, wherever it is.
void wait_for_old_pod(const Context& context, Plan& plan) {
  Status status = context.job.status;
  const auto& told = status.waiting;
  const Waiting words = old_pod_waiting(context);
  const bool is_told = told && told->reason == words.reason;
  const Time since = is_told ? told->since.value_or(context.now) : context.now;
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

// A turn to create a pod, or a slot of a worker.
void tell_of_turn(const Context& context, const TurnWait& wait, Waiting words, Plan& plan) {
  Status status = context.job.status;
  const bool is_told = status.waiting && status.waiting->reason == words.reason;
  // A job that says that it is queued would be admitted again.
  const bool has_no_pool =
      words.reason == Reason::kPoolMissing || words.reason == Reason::kNotKnownToThisVersion;
  const bool leaves_queue =
      has_no_pool && (context.view.observed.permit.admitted || status.says_queued());
  const Duration left = leaves_queue ? Duration::zero() : until_turn_is_told(context, wait);
  if (!is_told && left > Duration::zero()) {
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

void tell_of_queue(const Context& context, Plan& plan) {
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

}  // namespace

namespace {

void tell_of_version(const Context& context, Plan& plan) {
  Status status = context.job.status;
  settle_phase(context, status);
  status.waiting = version_waiting(context, active_deadline(context, status));
  plan.inform(std::move(status));
}

}  // namespace

void tell_of_pause(const Context& context, Plan& plan) {
  Status status = context.job.status;
  settle_phase(context, status);
  status.waiting = paused_waiting(context);
  plan.inform(std::move(status));
}

void wait_to_open(const Context& context, const Opening& opening, Plan& plan) {
  switch (opening.wait) {
    case Opening::Wait::kNothing:
    case Opening::Wait::kConfirm:
      return;
    case Opening::Wait::kPaused:
      return tell_of_pause(context, plan);
    case Opening::Wait::kVersion:
      return tell_of_version(context, plan);
    case Opening::Wait::kBackoff:
      return wait_for_backoff(context, *opening.due, plan);
    case Opening::Wait::kOldPod:
      return wait_for_old_pod(context, plan);
    case Opening::Wait::kPermit:
      return tell_of_queue(context, plan);
    case Opening::Wait::kTurn:
      return tell_of_turn(context, context.view.observed.turn_wait.value_or(TurnWait()),
                          turn_waiting(context, context.job.status), plan);
    case Opening::Wait::kWorker:
      return tell_of_turn(context, context.view.observed.pool.wait,
                          worker_waiting(context, context.job.status), plan);
    case Opening::Wait::kEmptyWorker:
      return tell_of_turn(context, context.view.observed.pool.wait,
                          empty_worker_waiting(context, context.job.status), plan);
  }
}

namespace {

// The resume waits no more for what runs that are left out still run.
void end_wait_for_left_out(const Context& context, Status& status) {
  const auto& told = status.waiting;
  const bool is_told =
      told && (told->reason == Reason::kOldPodNotEnded || told->reason == Reason::kWorkerStopping ||
               told->reason == Reason::kPodCreationUnanswered);
  if (!is_told) return;
  status.waiting = suspended_waiting();
  clear_condition(status, "Stalled", "Suspended", context.now);
}

}  // namespace

void decide_suspended(const Context& context, Plan& plan) {
  if (end_idle(context, plan)) return;
  if (context.spec.suspend) {
    Status status = context.job.status;
    end_wait_for_left_out(context, status);
    plan.inform(std::move(status));
    return;
  }
  const Opening left_out = leave_out_runs(context);
  if (left_out.wait == Opening::Wait::kOldPod) {
    plan.wake_in(context.spec.lost_after);
    return wait_for_old_pod(context, plan);
  }
  if (plan.looks_at(left_out.to_confirm)) return;
  WriteStatus write = start_write(context);
  end_wait_for_left_out(context, write.status);
  resume(context, write.status);
  plan.write(std::move(write));
}

namespace {

// How soon a request to delete a pod that the same decision sends has its answer.
constexpr seconds kAnswerLook{1};

// For a pod that is not deleted yet. One that a rule of the cluster protects is given up after the
// window. None: it is not given up, because its deletion was not refused.
std::optional<Duration> untold_left(const Context& context, const DeletionTrouble* trouble) {
  if (!trouble || !trouble->refused) return std::nullopt;
  return context.spec.lost_after - context.view.observed.cancelling_for;
}

bool is_longer(const std::optional<Duration>& a, const std::optional<Duration>& b) {
  return b && (!a || *a > *b);
}

// The job is stalled once its pod should have ended, and the request to delete it still fails.
void tell_of_failing_deletion(const Context& context, const PodsLeft& left, Status& status,
                              Plan& plan) {
  const auto& told = context.job.status.waiting;
  const bool is_told = told && told->reason == Reason::kPodDeletionFails;
  if (!left.trouble) {
    if (is_told) status = context.job.status;  // a new process has not asked yet
    return;
  }
  const bool counts = told && told->reason != Reason::kPodCreationUnanswered;
  const Time since = counts ? told->since.value_or(context.now) : context.now;
  const Time stalled_at = since + left.slowest->grace + context.spec.lost_after;
  if (!is_told && context.now < stalled_at) return plan.wake_at(stalled_at);
  status.waiting = Waiting{
      Reason::kPodDeletionFails,
      "pod " + left.slowest->name +
          " has to be stopped, and the request to delete it fails: " + left.trouble->message,
      "the operator tries again every 30 s; correct what fails the request: repair or remove the "
      "webhook that the message names (validating or mutating)",
      std::nullopt};
  set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                context.now);
}

// The attempt was given up: its pod is not waited for.
using IsGivenUp = std::function<bool(const PodView&, std::int64_t attempt)>;

std::optional<PodsLeft> pods_left_but(const Context& context, Plan& plan,
                                      const IsGivenUp& is_given_up) {
  const auto& deletions = context.view.observed.deletions;
  std::optional<PodsLeft> left;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod) || !pod_lives(context, pod)) continue;
    // A later attempt's: nothing stops it before the end, see tidy_pods().
    const Job& job = context.job;
    const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod.name);
    if (!pod.slot && (attempt > job.status.attempt || is_given_up(pod, attempt))) continue;
    const auto found = deletions.find(pod.name);
    PodsLeft one{&pod, Duration(context.spec.lost_after)};
    // A worker answers, or is cut off. Nobody gives up its attempt before.
    if (!pod.slot && found != deletions.end()) one.trouble = &found->second;
    if (!pod.slot && pod.deletion) one.time = overstay_left(context, pod);
    if (!pod.slot && !pod.deletion) one.time = untold_left(context, one.trouble);
    if (!pod.slot && !pod.deletion && !one.trouble) plan.wake_in(kAnswerLook);
    if (!left || is_longer(one.time, left->time)) left = one;
    const NodeObservation* const node = node_of(context, pod);
    if (node && node->missing_for) plan.wake_in(context.spec.lost_after - *node->missing_for);
  }
  if (left && left->time && !left->given_up()) plan.wake_in(*left->time);
  return left;
}

// A rule of the cluster forbids its deletion, and no window runs: the job is suspended, and its end
// is not on record.
bool is_protected(const Context& context, const PodView& pod) {
  const auto found = context.view.observed.deletions.find(pod.name);
  return context.job.status.phase == Phase::kSuspended && !pod.deletion &&
         found != context.view.observed.deletions.end() && found->second.refused;
}

}  // namespace

std::optional<PodsLeft> pods_left(const Context& context, Plan& plan) {
  return pods_left_but(context, plan, [](const PodView&, std::int64_t) { return false; });
}

std::optional<PodsLeft> pods_to_await(const Context& context, Plan& plan,
                                      std::unordered_set<std::int64_t> lost) {
  for (const HistoryEntry& entry : context.job.status.history) {
    if (entry.outcome == Outcome::kLost) lost.insert(entry.attempt);
  }
  // History has ten attempts. Of an older one its node tells. Not so of one that this decision
  // stops, or has just stopped: its worker may live though the node's kubelet is silent.
  const bool is_first = !recorded_end(context.job.status);
  return pods_left_but(context, plan, [&](const PodView& pod, std::int64_t attempt) {
    const NodeObservation* const node = node_of(context, pod);
    const Run* const run = context.job.status.run_of_pod(pod.name);
    const bool is_silent = is_first && !(run && run->open()) && node && node->silent_for &&
                           *node->silent_for >= silent_node_window(context, *node);
    return lost.count(attempt) > 0 || (pod.deletion && is_silent) || is_protected(context, pod);
  });
}

bool wait_for_pods(const Context& context, const std::optional<PodsLeft>& left, Waiting words,
                   Plan& plan) {
  const OpenCreation* const creation = last_creation(context.view);
  const bool pods_run = left && !left->given_up();
  if (!pods_run && (!creation || creation->left <= Duration::zero())) return false;
  Status status = context.job.status;
  // Until a pod is given up, or nobody knows when.
  if (pods_run && left->time && !left->slowest->slot) words.deadline = context.now + *left->time;
  if (!pods_run) {
    plan.wake_in(creation->left);
    words = creation_waiting(context, *creation);
  }
  status.waiting = std::move(words);
  clear_condition(status, "Stalled", to_string(Reason::kPodTerminating), context.now);
  if (pods_run && !left->time) tell_of_failing_deletion(context, *left, status, plan);
  plan.inform(std::move(status));
  return true;
}

std::vector<std::int64_t> creations_to_look_at(const JobView& view) {
  std::vector<std::int64_t> attempts;
  for (const OpenCreation& one : view.observed.creations) {
    if (one.asked) attempts.push_back(one.attempt);
  }
  return attempts;
}

void decide_cancelling(const Context& context, Plan& plan) {
  const std::optional<PodsLeft> left = pods_left(context, plan);
  Waiting words{Reason::kPodTerminating, "the job was cancelled: its pod is being stopped",
                "the job is Cancelled when the pod has ended, or at waiting.deadline",
                std::nullopt};
  if (left && left->slowest->slot) {
    words = {Reason::kWorkerStopping,
             "the job was cancelled; its attempt is being stopped on " + workers_left(context),
             "the job is Cancelled when nothing of it runs there any more, or "
             "when the worker is cut off",
             std::nullopt};
  } else if (left) {
    words.message = "the job was cancelled; pod " + left->slowest->name + " is being stopped";
  }
  if (wait_for_pods(context, left, std::move(words), plan)) return;
  if (plan.looks_at(unseen_runs(context), creations_to_look_at(context.view))) return;
  WriteStatus write = start_write(context);
  if (left) {
    write.ended.push_back(
        {.orphan_class = OrphanClass::kCancelDeadWorker, .trouble_for = -*left->time});
  }
  finish_cancelled(context, write);
  plan.write(std::move(write));
}

void decide_finished(const Context& context, Plan& plan) {
  const Status& status = context.job.status;
  hold_for_outbox(context, plan);
  // With the job its events would go.
  const bool may_go = status.outbox.empty();
  if (context.spec.ttl_after_finished && status.completion_time && may_go) {
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
