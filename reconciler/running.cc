// Phase Running: an attempt is recorded. Its pod runs, has ended, is silent, or does not exist.
#include <algorithm>

#include "reconciler/authorship.h"
#include "reconciler/heartbeat.h"
#include "reconciler/job_clock.h"
#include "reconciler/liveness.h"
#include "reconciler/phases.h"
#include "reconciler/pod_times.h"

namespace holdfast::reconciler {
namespace {

constexpr seconds kSlowStart{10};
// Another replica's creation is normally in progress only briefly. Longer waits are reported.
constexpr seconds kIntentNotice{5};
// For this long, and this often, the API server must call a template invalid if the dry run does
// not confirm it. A webhook may break the pod.
constexpr seconds kTemplateDoubt{120};
constexpr int kTemplateTries = 3;
constexpr const char* kTemplateDoubted =
    "the operator retries the same pod; the job fails as PodTemplateInvalid if it is still refused";
// A pod's times are whole seconds, rounded down, so the pod may have run for this much less.
constexpr seconds kPodTimeStep{1};
// A new message alone, of a worker or a scheduler, is written at most this often.
constexpr seconds kWordsInterval{30};

Verdict verdict_of(Outcome outcome, Reason reason, std::string message,
                   OrphanClass orphan_class = OrphanClass::kNone) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.reason = reason;
  verdict.message = std::move(message);
  verdict.orphan_class = orphan_class;
  return verdict;
}

void end(const Context& context, Plan& plan, const Verdict& verdict,
         Duration trouble_for = Duration::zero()) {
  plan.write(end_attempt(context, AttemptEnd{verdict, trouble_for}));
}

// A verdict that needs a live read.
void end_when_confirmed(const Context& context, Plan& plan, const Verdict& verdict,
                        Duration trouble_for = Duration::zero()) {
  if (context.view.observed.confirmed) {
    end(context, plan, verdict, trouble_for);
  } else {
    plan.confirm();
  }
}

void end_with_pod(const Context& context, Plan& plan, const PodView& pod) {
  const Verdict verdict = judge_ended_pod(pod, context.view.observed.pod.order);
  if (verdict.outcome != Outcome::kSucceeded || may_have_held_lease(context, pod)) {
    end(context, plan, verdict);
    return;
  }
  end_when_confirmed(context, plan,
                     verdict_of(Outcome::kLost, Reason::kLeaseNotGranted,
                                "pod " + pod.name +
                                    " ended well, but the job's Lease was never granted to it: "
                                    "its worker cannot have run",
                                OrphanClass::kPodVanished));
}

// The user's request, or the end of the job's time, ends an attempt with a running pod. A live read
// comes first, because the pod may have succeeded. True: the attempt ends now.
bool end_by_request(const Context& context, Plan& plan) {
  const auto deadline = active_deadline(context);
  const bool out_of_time = deadline && context.now >= *deadline;
  if ((context.spec.cancel || context.spec.suspend || out_of_time) &&
      !context.view.observed.confirmed) {
    plan.confirm();
    return true;
  }
  if (context.spec.cancel) {
    end(context, plan, verdict_of(Outcome::kCancelled, Reason::kCancelled, "spec.cancel is true"));
    return true;
  }
  if (context.spec.suspend) {
    end(context, plan, verdict_of(Outcome::kSuspended, Reason::kSuspended, "spec.suspend is true"));
    return true;
  }
  if (out_of_time) {
    end(context, plan,
        verdict_of(Outcome::kDeadlineExceeded, Reason::kDeadlineExceeded, kJobDeadlineMessage));
    return true;
  }
  if (deadline) plan.wake_at(*deadline);
  return false;
}

void fail_for_template(const Context& context, Plan& plan) {
  const std::string& message = context.view.observed.refusal->message;
  WriteStatus write;
  write.status = context.job.status;
  finish_failed(context, write.status, Reason::kPodTemplateInvalid, message);
  write.events.push_back(Event{true, "PodTemplateInvalid", "Finish", message});
  plan.write(std::move(write));
}

// The refusal is final: it came again after the time was over, and often enough.
bool template_has_failed(const Context& context) {
  const auto& refusal = context.view.observed.refusal;
  if (!refusal || refusal->kind != CreationRefusal::Kind::kTemplateRefused) return false;
  const auto until = template_doubted_until(context.job.status);
  return until && context.now - refusal->age >= *until && refusal->in_a_row >= kTemplateTries;
}

Waiting refused_waiting(const Context& context, const CreationRefusal& refusal) {
  using Kind = CreationRefusal::Kind;
  if (refusal.kind != Kind::kTemplateRefused) {
    return Waiting{
        refusal.kind == Kind::kNameTaken ? Reason::kPodNameTaken : Reason::kPodCreationRefused,
        refusal.message,
        "the operator retries the same pod every 5 to 30 s; no attempt and no "
        "budget is spent",
        active_deadline(context)};
  }
  const Time until =
      template_doubted_until(context.job.status).value_or(context.now + kTemplateDoubt);
  const bool too_few = until <= context.now;
  return Waiting{Reason::kPodCreationRefused, refusal.message, kTemplateDoubted,
                 too_few ? context.now + refusal.retry_in : until};
}

// When the creation may be retried. A template in doubt is also retried when its time is over.
Duration retry_left(const Context& context, const CreationRefusal& refusal) {
  const auto until = template_doubted_until(context.job.status);
  if (refusal.kind != CreationRefusal::Kind::kTemplateRefused || !until) return refusal.retry_in;
  const bool tried_since = context.now - refusal.age >= *until;
  return tried_since ? refusal.retry_in : std::min(refusal.retry_in, *until - context.now);
}

void retry_creation(const Context& context, Plan& plan) {
  const auto& refusal = context.view.observed.refusal;
  if (refusal && retry_left(context, *refusal) > Duration::zero()) {
    Status status = context.job.status;
    status.waiting = refused_waiting(context, *refusal);
    const Time since = status.attempt_start_time.value_or(context.now);
    const Time stalled_at = since + context.spec.start_deadline;
    if (context.now >= stalled_at) {
      set_condition(status, "Stalled", true, status.waiting->reason.text(), refusal->message,
                    context.now);
    } else {
      plan.wake_at(stalled_at);
    }
    plan.wake_in(retry_left(context, *refusal));
    // Until it is recorded, the next holder would treat the attempt as abandoned.
    const auto& told = context.job.status.waiting;
    const bool on_record = told && (told->reason == Reason::kPodCreationRefused ||
                                    told->reason == Reason::kPodNameTaken);
    plan.inform(std::move(status), /*at_once=*/!on_record);
    return;
  }
  // After a refusal, or a time without the shard, another replica may have tried too. Only a live
  // read shows whether the attempt has already had its pod and its end.
  const Observed& observed = context.view.observed;
  if ((refusal || !observed.own_intent || observed.took_over) && !observed.confirmed) {
    plan.confirm();
    return;
  }
  if (observed.may_create) {
    plan.create_pod();
  } else {
    plan.await_creation();
  }
}

// Another replica recorded the attempt: it may still create its pod, `left` from now.
void await_foreign_pod(const Context& context, Plan& plan, Duration left) {
  plan.wake_in(left);
  Status status = context.job.status;
  const Duration notice = kIntentNotice - context.view.observed.no_pod_for;
  if (notice > Duration::zero() && !told_deadline_has_passed(context)) {
    plan.wake_in(notice);
    return;
  }
  status.waiting = Waiting{
      Reason::kPodNotCreated,
      "attempt " + std::to_string(status.attempt) + " is on record, and its pod does not exist",
      "the attempt ends as Lost unless the pod appears", context.now + left};
  plan.inform(std::move(status));
}

void decide_no_pod(const Context& context, Plan& plan) {
  const Observed& observed = context.view.observed;
  const Status& status = context.job.status;
  if (observed.refusal && observed.refusal->kind == CreationRefusal::Kind::kTemplateInvalid) {
    fail_for_template(context, plan);
    return;
  }
  if (end_by_request(context, plan)) return;
  const bool existed =
      observed.pod_existed || !status.node_name.empty() || !known_pod_uid(context.view).empty();
  if (!existed) {
    const bool was_refused =
        status.waiting && (status.waiting->reason == Reason::kPodCreationRefused ||
                           status.waiting->reason == Reason::kPodNameTaken);
    if (template_has_failed(context)) {
      fail_for_template(context, plan);
      return;
    }
    if (observed.own_intent || was_refused || observed.refusal) {
      retry_creation(context, plan);
      return;
    }
    const Duration left = kForeignIntentWait - observed.no_pod_for;
    if (left > Duration::zero()) {
      await_foreign_pod(context, plan, left);
      return;
    }
  }
  if (!observed.confirmed) {
    plan.confirm();
    return;
  }
  if (existed) {
    end(context, plan,
        verdict_of(Outcome::kLost, Reason::kPodGone, "pod " + status.pod_name + " is gone",
                   OrphanClass::kPodVanished),
        observed.no_pod_for);
  } else {
    end(context, plan,
        verdict_of(
            Outcome::kLost, Reason::kPodNeverCreated,
            "the attempt was recorded, but the replica that recorded it did not create its pod",
            OrphanClass::kIntentWithoutPod),
        observed.no_pod_for);
  }
}

// When a node comes or goes, a scheduler may report something new for thousands of pods.
void keep_old_words(const Context& context, Status& status, Plan& plan) {
  const auto& told = context.job.status.waiting;
  const Duration pause = kWordsInterval - context.view.observed.since_write;
  if (pause <= Duration::zero() || !told || told->reason != Reason::kPodUnschedulable ||
      status.waiting->reason != told->reason || status.waiting->message == told->message) {
    return;
  }
  status.waiting->message = told->message;
  plan.wake_in(pause);
}

// Records node, start and what the job waits for, if there is something new.
void inform(const Context& context, const PodView& pod, const std::vector<Limit>& limits,
            Plan& plan) {
  Status status = context.job.status;
  const AnyReason before = status.waiting ? status.waiting->reason : AnyReason();
  const bool told_otherwise = before == Reason::kPodCreationRefused ||
                              before == Reason::kPodNameTaken || before == Reason::kPodNotCreated;
  const bool between = pod.started() && pod.stands_still();
  const Duration age =
      between ? context.view.observed.still_for : context.now - placed_since(context, pod);
  status.waiting = describe(context, pod, limits);
  if (status.waiting->reason == Reason::kNoScheduler) {
    set_condition(status, "Stalled", true, to_string(Reason::kNoScheduler), status.waiting->message,
                  context.now);
  } else {
    clear_condition(status, "Stalled", "Started", context.now);
  }
  bool due = told_otherwise || told_deadline_has_passed(context);
  if (status.waiting->reason == Reason::kPodRunning) {
    const Duration ran = context.now - attempt_start(context, pod).value_or(pod.created);
    due = due || ran >= kInfoWriteInterval + kPodTimeStep;
    if (!due) plan.wake_in(kInfoWriteInterval + kPodTimeStep - ran);
  } else if (status.waiting->reason == Reason::kPodStarting) {
    due = due || age >= kSlowStart;
    if (!due) plan.wake_in(kSlowStart - age);
    if (pod.placement() == Placement::kUnseen) plan.wake_in(unseen_left(context, pod));
  } else {
    due = due || age >= kInfoWriteInterval;
    if (!due) plan.wake_in(kInfoWriteInterval - age);
    keep_old_words(context, status, plan);
  }
  if (holds_lease(context, pod) && !context.view.lease->progress_message.empty()) {
    const Duration pause = kWordsInterval - context.view.observed.since_write;
    if (pause <= Duration::zero() || status.progress.empty()) {
      status.progress = context.view.lease->progress_message;
    } else if (status.progress != context.view.lease->progress_message) {
      plan.wake_in(pause);
    }
  }
  status.node_name = pod.node_name;
  record_start(context, pod, status);
  if (due) plan.inform(std::move(status));
}

}  // namespace

std::optional<Time> template_doubted_until(const Status& status) {
  const bool doubted = status.waiting && status.waiting->next_action == kTemplateDoubted;
  return doubted ? status.waiting->deadline : std::nullopt;
}

void decide_running(const Context& context, Plan& plan) {
  const PodView* const pod = current_pod(context.view);
  if (!pod) {
    decide_no_pod(context, plan);
    return;
  }
  if (pod->ended() && is_proven(context.view, *pod)) {
    end_with_pod(context, plan, *pod);
    return;
  }
  // Without an owner the pod would outlive its job, because nothing else collects it.
  if (pod->owner_uid != context.job.uid) {
    end_when_confirmed(
        context, plan,
        verdict_of(Outcome::kLost, Reason::kOwnerRemoved,
                   "the job no longer owns pod " + pod->name + "; the operator stops it",
                   OrphanClass::kPodVanished));
    return;
  }
  if (end_by_request(context, plan)) return;
  if (pod->deletion && pod->node_name.empty()) {
    end(context, plan,
        verdict_of(Outcome::kLost, Reason::kPodDeleted,
                   "the pod was deleted before it was bound to a node", OrphanClass::kPodVanished));
    return;
  }
  // A pod that is being deleted ends because of that, and its end says why.
  const bool may_run_on = context.spec.heartbeat && !pod->deletion;
  const auto fenced = may_run_on ? judge_fenced_worker(*pod) : std::nullopt;
  if (fenced) {
    end_when_confirmed(context, plan, *fenced);
    return;
  }
  const std::vector<Limit> limits = limits_on(context, *pod);
  const auto first = std::min_element(limits.begin(), limits.end(),
                                      [](auto& a, auto& b) { return a.left < b.left; });
  if (first != limits.end() && first->left <= Duration::zero()) {
    end_when_confirmed(context, plan, first->verdict, first->trouble_for);
    return;
  }
  for (const Limit& limit : limits) {
    plan.wake_in(std::min(limit.left, limit.look_in.value_or(limit.left)));
  }
  inform(context, *pod, limits, plan);
}

}  // namespace holdfast::reconciler
