#include "reconciler/run/running.h"

#include <algorithm>

#include "core/utf8.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/heartbeat.h"
#include "reconciler/run/liveness.h"
#include "reconciler/run/pod_times.h"
#include "reconciler/run/slot.h"

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
// A pod that has run for this long costs a write of its own, for its node and its start. A short
// pod must not cost it in a backlog, where the operator sees the pod's end a second or two late.
// The pod's times are whole seconds, rounded down, so it may have run for up to 1 s less.
constexpr seconds kPodRunningNotice{3};

// A verdict that needs a live read.
RunStep ended_when_confirmed(const RunContext& context, const Verdict& verdict,
                             Duration trouble_for = Duration::zero()) {
  if (!context.seen.observed.confirmed) return ReadFirst{};
  const bool lasted = trouble_for > Duration::zero();
  return AttemptEnd{verdict, trouble_for + (lasted ? look_age(context) : Duration::zero())};
}

RunStep ended_with_pod(const RunContext& context, const PodView& pod) {
  const Verdict verdict =
      judge_ended_pod(pod, context.seen.observed.pod.order, has_started(context, pod));
  if (verdict.outcome != Outcome::kSucceeded || may_have_held_lease(context, pod)) {
    return AttemptEnd{verdict};
  }
  return ended_when_confirmed(
      context, verdict_of(Outcome::kLost, Reason::kLeaseNotGranted,
                          "pod " + pod.name +
                              " ended well, but the job's Lease was never granted to it: "
                              "its worker cannot have run",
                          OrphanClass::kPodVanished));
}

// A live read comes first, because the pod may have succeeded.
std::optional<RunStep> ended_by_request(const RunContext& context) {
  const std::optional<Verdict> end = requested_end(context);
  if (!end) return std::nullopt;
  return ended_when_confirmed(context, *end);
}

// The refusal is final: it came again after the time was over, and often enough.
bool template_has_failed(const RunContext& context) {
  const auto& refusal = context.seen.observed.refusal;
  if (!refusal || refusal->kind != CreationRefusal::Kind::kTemplateRefused) return false;
  const auto until = template_doubted_until(context.job.status);
  if (!until || context.now - refusal->age < *until || refusal->in_a_row < kTemplateTries) {
    return false;
  }
  // A template of which pods exist is not invalid: something refuses some of them. Open runs have
  // pods of this template, because it changes only while the job is suspended.
  const auto& runs = context.job.status.runs;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    if (runs[position].open() && context.pods[position]) return false;
  }
  const auto& pods = context.view.pods;
  return std::none_of(pods.begin(), pods.end(), [&](const PodView& pod) {
    return is_ours(context.view, pod) && pod.created >= *until - kTemplateDoubt;
  });
}

Waiting refused_waiting(const RunContext& context, const CreationRefusal& refusal) {
  using Kind = CreationRefusal::Kind;
  if (refusal.kind != Kind::kTemplateRefused) {
    return Waiting{
        refusal.kind == Kind::kNameTaken ? Reason::kPodNameTaken : Reason::kPodCreationRefused,
        refusal.message,
        "the operator retries the same pod every 5 to 30 s; no attempt and no budget is spent",
        context.deadline};
  }
  const Time until =
      template_doubted_until(context.job.status).value_or(context.now + kTemplateDoubt);
  const bool too_few = until <= context.now;
  return Waiting{Reason::kPodTemplateRefused, refusal.message, kTemplateDoubted,
                 too_few ? context.now + refusal.retry_in : until};
}

// When the creation may be retried. A template in doubt is also retried when its time is over.
Duration retry_left(const RunContext& context, const CreationRefusal& refusal) {
  const auto until = template_doubted_until(context.job.status);
  if (refusal.kind != CreationRefusal::Kind::kTemplateRefused || !until) return refusal.retry_in;
  const bool tried_since = context.now - refusal.age >= *until;
  return tried_since ? refusal.retry_in : std::min(refusal.retry_in, *until - context.now);
}

RunStep retried_creation(const RunContext& context) {
  GoesOn step{.run = context.run};
  const auto& refusal = context.seen.observed.refusal;
  if (refusal && retry_left(context, *refusal) > Duration::zero()) {
    step.waiting = refused_waiting(context, *refusal);
    step.run.refused =
        refusal->message.empty() ? "refused" : utf8_prefix(refusal->message, kRefusedLimit);
    const Time since = context.run.start_time.value_or(context.now);
    const Time stalled_at = since + context.spec.start_deadline;
    if (context.now >= stalled_at) {
      step.stalled = true;
    } else {
      step.wake_in(stalled_at - context.now);
    }
    step.wake_in(retry_left(context, *refusal));
    // Until it is recorded, the next holder would treat the attempt as abandoned.
    step.at_once = context.run.refused.empty();
    return step;
  }
  // After a refusal, or a time without the shard, another replica may have tried too. Only a live
  // read shows whether the attempt has already had its pod and its end.
  const RunObserved& observed = context.seen.observed;
  if ((refusal || !observed.own_intent || observed.took_over) && !observed.confirmed) {
    return ReadFirst{};
  }
  // A newer version recorded the attempt.
  if (!context.job.unknown.empty() && !observed.own_intent) {
    step.waiting = version_waiting(context, context.deadline);
    step.stalled = true;
    return step;
  }
  step.create = true;
  return step;
}

// Another replica recorded the attempt: it may still create its pod, `left` from now.
RunStep foreign_pod_awaited(const RunContext& context, Duration left) {
  GoesOn step{.run = context.run};
  step.wake_in(left);
  const Duration notice = kIntentNotice - context.seen.observed.no_pod_for;
  if (notice > Duration::zero() && !reported_deadline_has_passed(context)) {
    step.wake_in(notice);
    return step;
  }
  step.waiting = Waiting{Reason::kPodNotCreated,
                         "attempt " + std::to_string(context.run.attempt) +
                             " is on record, and its pod does not exist",
                         "the attempt ends as Lost unless the pod appears", context.now + left};
  return step;
}

RunStep decide_no_pod(const RunContext& context) {
  const RunObserved& observed = context.seen.observed;
  const Run& run = context.run;
  if (observed.refusal && observed.refusal->kind == CreationRefusal::Kind::kTemplateInvalid) {
    return TemplateFails{observed.refusal->message};
  }
  if (const auto step = ended_by_request(context)) return *step;
  const bool existed =
      observed.pod_existed || !run.node_name.empty() || !known_pod_uid(run, context.seen).empty();
  if (is_being_created(context.view, run.attempt)) return GoesOn{.run = run};
  if (!existed) {
    const bool was_refused = !run.refused.empty();
    if (template_has_failed(context)) return TemplateFails{observed.refusal->message};
    if (observed.own_intent || was_refused || observed.refusal) return retried_creation(context);
    const Duration left = context.view.observed.takeover - observed.no_pod_for;
    if (left > Duration::zero()) return foreign_pod_awaited(context, left);
  }
  const Verdict verdict =
      existed
          ? verdict_of(Outcome::kLost, Reason::kPodGone, "pod " + run.pod_name + " is gone",
                       OrphanClass::kPodVanished)
          : verdict_of(
                Outcome::kLost, Reason::kPodNeverCreated,
                "the attempt was recorded, but the replica that recorded it did not create its pod",
                OrphanClass::kIntentWithoutPod);
  return ended_when_confirmed(context, verdict, observed.no_pod_for);
}

// Node, start and what the run waits for, if they are due to be recorded.
void inform(const RunContext& context, const PodView& pod, const std::vector<Limit>& limits,
            GoesOn& step) {
  const auto& reported = context.job.status.waiting;
  const AnyReason before = reported ? reported->reason : AnyReason();
  const bool reported_otherwise = before == Reason::kPodNotCreated || !context.run.refused.empty();
  const bool between = start_is_taken_back(context, pod) || (pod.started() && pod.stands_still());
  const Duration age =
      between ? context.seen.observed.still_for : context.now - placed_since(context, pod);
  step.waiting = describe(context, pod, limits);
  step.stalled = step.waiting->reason == Reason::kNoScheduler;
  bool due = reported_otherwise || reported_deadline_has_passed(context);
  const auto due_at = [&](Duration reached, Duration after) {
    due = due || reached >= after;
    if (!due) step.wake_in(after - reached);
  };
  if (step.waiting->reason == Reason::kPodRunning) {
    due_at(context.now - attempt_start(context, pod).value_or(pod.created), kPodRunningNotice);
  } else if (step.waiting->reason == Reason::kPodStarting) {
    due_at(age, kSlowStart);
    const bool unseen = !pod.started() && pod.placement() == Placement::kUnseen;
    if (unseen) step.wake_in(unseen_left(context, pod));
  } else {
    due_at(age, kInfoWriteInterval);
  }
  if (holds_lease(context, pod)) step.progress = context.seen.lease->progress_message;
  step.run.node_name = pod.node_name;
  step.run.refused.clear();
  record_start(context, pod, step.run);
  if (due) return;
  step.run = context.run;
  step.waiting.reset();
  step.stalled.reset();
}

}  // namespace

void GoesOn::wake_in(Duration delay) {
  delay = std::max(delay, Duration::zero());
  if (!wake_after || delay < *wake_after) wake_after = delay;
}

std::optional<Verdict> requested_end(const RunContext& context) {
  if (context.spec.cancel) {
    return verdict_of(Outcome::kCancelled, Reason::kCancelled, "spec.cancel is true");
  }
  if (context.spec.suspend) {
    return verdict_of(Outcome::kSuspended, Reason::kSuspended, "spec.suspend is true");
  }
  if (context.excess) {
    return verdict_of(Outcome::kSuspended, Reason::kParallelismReduced,
                      "spec.parallelism allows fewer open runs");
  }
  if (context.deadline && asked_at(context) >= *context.deadline) {
    return stopped_by(context, to_string(Reason::kDeadlineExceeded));
  }
  return std::nullopt;
}

Verdict stopped_by(const RunContext& context, const std::string& end) {
  const std::string what = context.job.stages.empty() ? "the job" : "the stage";
  return verdict_of(
      Outcome::kCancelled, Reason::kRunsStopped,
      what + " ends (" + end + "): its open runs are stopped" + why_not_running(context));
}

std::optional<Time> template_doubted_until(const Status& status) {
  const bool doubted = status.waiting && status.waiting->reason == Reason::kPodTemplateRefused;
  return doubted ? status.waiting->deadline : std::nullopt;
}

RunStep decide_run(const RunContext& context) {
  if (context.run.at_worker()) return decide_at_worker(context);
  const PodView* const pod = context.pod;
  if (!pod) return decide_no_pod(context);
  if (pod->ended() && is_proven(context.view, context.run, context.seen, *pod)) {
    return ended_with_pod(context, *pod);
  }
  // Without an owner the pod would outlive its job, because nothing else collects it.
  if (pod->owner_uid != context.job.uid) {
    return ended_when_confirmed(
        context, verdict_of(Outcome::kLost, Reason::kOwnerRemoved,
                            "the job no longer owns pod " + pod->name + "; the operator stops it",
                            OrphanClass::kPodVanished));
  }
  if (const auto step = ended_by_request(context)) return *step;
  if (pod->deletion && pod->node_name.empty()) {
    return AttemptEnd{verdict_of(Outcome::kLost, Reason::kPodDeleted,
                                 "the pod was deleted before it was bound to a node",
                                 OrphanClass::kPodVanished)};
  }
  // A pod that is being deleted ends because of that, and its end says why.
  const bool may_run_on = context.spec.heartbeat && !pod->deletion;
  const auto fenced = may_run_on ? judge_fenced_worker(*pod) : std::nullopt;
  if (fenced) return ended_when_confirmed(context, *fenced);
  const std::vector<Limit> limits = limits_on(context, *pod);
  const auto first = std::min_element(limits.begin(), limits.end(),
                                      [](auto& a, auto& b) { return a.left < b.left; });
  if (first != limits.end() && first->left <= Duration::zero()) {
    return ended_when_confirmed(context, first->verdict, first->trouble_for);
  }
  GoesOn step{.run = context.run};
  for (const Limit& limit : limits) {
    step.wake_in(std::min(limit.left, limit.look_in.value_or(limit.left)) - look_age(context));
  }
  inform(context, *pod, limits, step);
  return step;
}

}  // namespace holdfast::reconciler
