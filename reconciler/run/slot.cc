#include "reconciler/run/slot.h"

#include <algorithm>
#include <utility>

#include "reconciler/run/liveness.h"
#include "reconciler/run/pod_times.h"
#include "reconciler/run/verdict.h"

namespace holdfast::reconciler {
namespace {

// An attempt that has run for this long costs a write of its own, for its start and its worker. A
// short one must not.
constexpr seconds kRunningNotice{3};
// A worker learns of its attempts within milliseconds. A longer wait is reported.
constexpr seconds kStartNotice{5};

std::string worker_of(const RunContext& context) { return "worker " + context.run.worker_name; }

bool is_its_own_end(const SlotView& slot) { return slot.out_of_memory && !slot.beside_others; }

// The worker is cut off, and the attempt did not end before.
Verdict lost_end(const RunContext& context, const SlotView& slot) {
  if (is_its_own_end(slot)) {
    Verdict verdict = verdict_of(Outcome::kFailed, Reason::kOOMKilled,
                                 worker_of(context) +
                                     " ran out of memory, and the kernel killed "
                                     "it; this attempt was alone on it");
    verdict.exit_code = kSigkillExit;
    return verdict;
  }
  if (slot.out_of_memory) {
    return verdict_of(Outcome::kLost, Reason::kWorkerOOMKilled,
                      worker_of(context) +
                          " ran out of memory, and the kernel killed it with all "
                          "that it ran; the run's next attempts are alone on their workers",
                      OrphanClass::kPodDisrupted);
  }
  const std::string why =
      slot.lost_why.empty() ? " was silent, and is cut off" : " is cut off: " + slot.lost_why;
  return verdict_of(Outcome::kLost, Reason::kWorkerLost, worker_of(context) + why,
                    OrphanClass::kHolderSilent);
}

// The end that the worker has reported, or that follows from its silence. None: it may run.
std::optional<Verdict> reported_end(const RunContext& context, const SlotView& slot) {
  switch (slot.at) {
    case AtPlace::kUnknown:
    case AtPlace::kRunning:
      return std::nullopt;
    case AtPlace::kEnded:
      return judge_ended_pod(*context.pod);
    case AtPlace::kLost:
      return lost_end(context, slot);
    case AtPlace::kStopped:
      return verdict_of(Outcome::kLost, Reason::kWorkerStopped,
                        worker_of(context) + " stopped the command, because it had to end itself",
                        OrphanClass::kPodDisrupted);
    case AtPlace::kReturned:
      return verdict_of(Outcome::kHandedBack, Reason::kHandedBack,
                        worker_of(context) + " handed the attempt back before it began");
  }
  return std::nullopt;
}

std::vector<Limit> limits_at(const RunContext& context, const SlotView& slot) {
  std::vector<Limit> limits;
  const Time since = context.run.start_time.value_or(context.now);
  const auto add = [&](Verdict verdict, Duration window, Duration age) {
    limits.push_back({std::move(verdict), window - age, age});
  };
  if (slot.at == AtPlace::kUnknown) {
    if (!slot.is_known) return limits;
    add(verdict_of(Outcome::kStartTimeout, Reason::kStartTimeout,
                   worker_of(context) + " did not begin the attempt for " +
                       in_seconds(context.spec.start_deadline),
                   OrphanClass::kPodNeverStarted),
        context.spec.start_deadline, context.now - since);
    return limits;
  }
  if (const auto deadline = context.spec.attempt_deadline) {
    add(verdict_of(
            Outcome::kDeadlineExceeded, Reason::kAttemptDeadlineExceeded,
            "the attempt ran longer than attemptDeadlineSeconds (" + in_seconds(*deadline) + ")",
            OrphanClass::kAttemptTooLong),
        *deadline, context.now - since);
  }
  const auto& pool = context.spec.pool;
  if (pool && pool->progress_deadline) {
    add(verdict_of(Outcome::kHung, Reason::kNoProgress,
                   "the command made no progress for " + in_seconds(*pool->progress_deadline),
                   OrphanClass::kHolderHung),
        *pool->progress_deadline, slot.stalled_for);
  }
  return limits;
}

Waiting describe_at(const RunContext& context, const SlotView& slot, const Limit* first) {
  const std::string attempt = "attempt " + std::to_string(context.run.attempt);
  Waiting waiting;
  if (slot.at == AtPlace::kUnknown) {
    waiting = {Reason::kWorkerStarting, worker_of(context) + " was told of " + attempt,
               attempt + " runs once the worker has begun it, or moves on if the worker is lost",
               std::nullopt};
  } else {
    waiting = {Reason::kWorkerRunning, attempt + " runs on " + worker_of(context),
               attempt + " ends when its command does", std::nullopt};
  }
  if (first) {
    waiting.next_action = attempt + " ends as " + to_string(first->verdict.outcome);
    waiting.deadline = context.now + first->left;
  }
  if (context.deadline && (!waiting.deadline || *context.deadline < *waiting.deadline)) {
    waiting.deadline = context.deadline;
    waiting.next_action = context.job.stages.empty() ? "the job fails as DeadlineExceeded"
                                                     : "the stage fails as DeadlineExceeded";
  }
  return waiting;
}

RunStep goes_on(const RunContext& context, const SlotView& slot) {
  GoesOn step{.run = context.run};
  const std::vector<Limit> limits = limits_at(context, slot);
  const auto first = std::min_element(limits.begin(), limits.end(),
                                      [](auto& a, auto& b) { return a.left < b.left; });
  const bool has_limit = first != limits.end();
  if (has_limit && first->left <= Duration::zero()) {
    return AttemptEnd{first->verdict, first->trouble_for};
  }
  if (has_limit) step.wake_in(first->left);
  const Duration age = context.now - context.run.start_time.value_or(context.now);
  const Duration notice = slot.at == AtPlace::kUnknown ? kStartNotice : kRunningNotice;
  if (age < notice && !reported_deadline_has_passed(context)) {
    step.wake_in(notice - age);
    return step;
  }
  step.waiting = describe_at(context, slot, has_limit ? &*first : nullptr);
  step.stalled = false;
  step.progress = slot.progress;
  // An edited status may have one attempt twice. Then one of the two has no place.
  if (slot.at == AtPlace::kRunning && context.pod) record_start(context, *context.pod, step.run);
  return step;
}

}  // namespace

PodView slot_as_pod(const Job& job, const Run& run, const SlotView& slot) {
  PodView pod;
  pod.slot = true;
  pod.name = run.pod_name;
  pod.uid = run.worker_uid;
  pod.owner_uid = job.uid;
  pod.job_uid_label = job.uid;
  pod.attempt = run.attempt;
  pod.intent = run.start_time;
  pod.node_name = run.worker_name;
  pod.created = run.start_time.value_or(job.created);
  const bool is_over = run.open() ? is_empty(slot.at) : slot.left;
  ContainerView container;
  container.name = kSlotContainer;
  container.worker = true;
  if (slot.at == AtPlace::kRunning || slot.at == AtPlace::kEnded) {
    container.started = true;
    container.started_at = run.start_time;
  }
  if (slot.at == AtPlace::kEnded) {
    Terminated end;
    end.exit_code = slot.exit_code;
    end.message = slot.result;
    container.terminated = std::move(end);
  }
  // As the kubelet shows it of a pod's only container, for podFailurePolicy.
  if (slot.at == AtPlace::kLost && is_its_own_end(slot)) {
    Terminated end;
    end.exit_code = kSigkillExit;
    end.reason = to_string(Reason::kOOMKilled);
    end.out_of_memory = true;
    container.started = true;
    container.started_at = run.start_time;
    container.terminated = std::move(end);
  }
  const bool succeeded = slot.at == AtPlace::kEnded && slot.exit_code == 0;
  pod.phase = is_over             ? (succeeded ? PodPhase::kSucceeded : PodPhase::kFailed)
              : container.started ? PodPhase::kRunning
                                  : PodPhase::kPending;
  pod.containers.push_back(std::move(container));
  return pod;
}

RunStep decide_at_worker(const RunContext& context) {
  static const SlotView kNothing;
  const SlotView& slot = context.seen.slot ? *context.seen.slot : kNothing;
  if (const auto end = context.pod ? reported_end(context, slot) : std::nullopt) {
    return AttemptEnd{*end};
  }
  if (const auto end = requested_end(context)) return AttemptEnd{*end};
  return goes_on(context, slot);
}

bool runs_at_worker(const Context& context, const Run& run) {
  if (!run.at_worker()) return false;
  const auto& runs = context.job.status.runs;
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& was) { return was.index == run.index; });
  if (found == runs.end() || found->attempt != run.attempt) return false;
  const PodView* const pod = context.pods[static_cast<std::size_t>(found - runs.begin())];
  return pod && pod->slot && pod_lives(context, *pod);
}

std::string workers_left(const Context& context) {
  std::string text;
  for (const PodView& pod : context.view.pods) {
    if (!pod.slot || !pod_lives(context, pod)) continue;
    if (text.size() > 200) return text + ", ...";
    text += (text.empty() ? "worker " : ", worker ") + pod.node_name;
  }
  return text;
}

}  // namespace holdfast::reconciler
