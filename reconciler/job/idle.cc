// What a job does while no attempt of it runs: (none), Pending, Backoff, Suspended, Cancelling and
// the terminal phases.
#include "reconciler/job/conditions.h"
#include "reconciler/job/edges.h"
#include "reconciler/job/notifications.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/pods_left.h"
#include "reconciler/job/settled.h"
#include "reconciler/job/waiting.h"
#include "reconciler/run/creations.h"
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
    // Only an edited status is Running here, and it has no edge to Cancelled.
    const bool runs_nothing = write.status.phase == Phase::kRunning;
    if (can_wait &&
        (has_next || runs_nothing || any_pod_lives(context) || last_creation(context.view))) {
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

// The resume waits no more for what runs that are left out still run.
void end_wait_for_left_out(const Context& context, Status& status) {
  const auto& reported = status.waiting;
  const bool is_reported = reported && (reported->reason == Reason::kOldPodNotEnded ||
                                        reported->reason == Reason::kWorkerStopping ||
                                        reported->reason == Reason::kPodCreationUnanswered);
  if (!is_reported) return;
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
  const bool is_due = context.view.observed.settling == Settling::kNow;
  if (is_due && lacks_settled(context.view)) return plan.write(start_write(context));
  plan.inform(status);  // observedGeneration
}

}  // namespace holdfast::reconciler
