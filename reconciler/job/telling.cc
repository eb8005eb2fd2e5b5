#include "reconciler/job/telling.h"

#include <algorithm>

#include "reconciler/job/job_clock.h"

namespace holdfast::reconciler {
namespace {

// The worse, the higher.
int trouble(const RunStep& step) {
  const AnyReason& reason = step.waiting->reason;
  // Its deadline is on record here alone.
  if (reason == Reason::kPodTemplateRefused) return 5;
  if (step.stalled.value_or(false)) return 4;
  if (reason == Reason::kPodRunning) return 0;
  if (reason == Reason::kPodStarting) return 1;
  return step.waiting->deadline ? 3 : 2;
}

bool is_worse(const RunStep& one, const RunStep& other) {
  if (trouble(one) != trouble(other)) return trouble(one) > trouble(other);
  const auto& a = one.waiting->deadline;
  const auto& b = other.waiting->deadline;
  return a && (!b || *a < *b);
}

// In a job with many runs, the words of one run name it.
Waiting words_of(const Context& context, const RunStepAt& worst) {
  Waiting waiting = *worst.step.waiting;
  if (!context.spec.many_runs()) return waiting;
  if (trouble(worst.step) == 0) {
    return Waiting{Reason::kPodRunning, "the pods of the open runs run",
                   "each run ends with its pod, and the next one opens", active_deadline(context)};
  }
  waiting.message =
      "run " + std::to_string(context.job.status.runs[worst.place].index) + ": " + waiting.message;
  return waiting;
}

}  // namespace

void tell_places(const std::vector<RunStepAt>& steps, const Status& before, Status& next) {
  auto run = next.runs.begin();  // both lists are in order
  for (const auto& [place, step] : steps) {
    const std::int64_t index = before.runs[place].index;
    while (run != next.runs.end() && run->index < index) ++run;
    if (run == next.runs.end()) return;
    if (run->index == index && step.waiting) *run = step.run;
  }
}

bool tell_of_all(const Context& context, const std::vector<RunStepAt>& steps, Status& status) {
  const RunStepAt* worst = nullptr;
  bool stalled = false;
  for (const RunStepAt& one : steps) {
    if (!one.step.waiting) continue;
    if (!worst || is_worse(one.step, worst->step)) worst = &one;
    stalled = stalled || one.step.stalled.value_or(false);
  }
  if (!worst) return false;
  status.waiting = words_of(context, *worst);
  if (stalled) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else if (worst->step.stalled) {
    clear_condition(status, "Stalled", "Started", context.now);
  }
  return true;
}

void say_why_not_open(const Context& context, const Opening& opening, const AttemptsEnd& last,
                      Status& status) {
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const Run& one) { return one.index == opening.index; });
  if (opening.wait == Opening::Wait::kPaused) {
    status.waiting = paused_waiting(context);
  } else if (opening.wait == Opening::Wait::kOldPod) {
    status.waiting = old_pod_waiting(context);
  } else if (opening.wait == Opening::Wait::kBackoff && run != status.runs.end()) {
    status.waiting = next_attempt_waiting(context, status, last, *run);
  } else {
    status.waiting = turn_waiting(context, status);
  }
}

Waiting stopping_waiting(const JobEnd& reached) {
  return Waiting{Reason::kRunsStopped,
                 "the job ends (" + reached.reason + "): its pods are being stopped",
                 std::string("the job is ") + (reached.succeeds ? "Succeeded" : "Failed") +
                     " when they have ended, or at waiting.deadline",
                 std::nullopt};
}

Waiting paused_waiting(const Context& context) {
  return Waiting{Reason::kPaused, "spec.parallelism is 0: no run opens",
                 "set spec.parallelism to 1 or more to go on", active_deadline(context)};
}

}  // namespace holdfast::reconciler
