// What becomes of the job's open runs, and which runs open next.
#include <algorithm>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/phases.h"
#include "reconciler/run/running.h"

namespace holdfast::reconciler {
namespace {

struct Step {
  std::size_t place = 0;  // in status.runs
  RunStep step;
};

std::vector<Step> decide_runs(const Context& context) {
  std::vector<Step> steps;
  const auto& runs = context.job.status.runs;
  for (std::size_t place = 0; place < runs.size(); ++place) {
    if (runs[place].open()) steps.push_back({place, decide_run(of_run(context, place))});
  }
  return steps;
}

WriteStatus fail_for_template(const Context& context, const std::string& message) {
  WriteStatus write;
  write.status = context.job.status;
  finish_failed(context, write.status, Reason::kPodTemplateInvalid, message);
  write.events.push_back(Event{true, "PodTemplateInvalid", "Finish", message});
  return write;
}

// What the job waits for now that attempts have ended and none has started.
void say_why_not_open(const Context& context, const Opening& opening, const AttemptsEnd& last,
                      Status& status) {
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const Run& one) { return one.index == opening.index; });
  if (opening.wait == Opening::Wait::kOldPod) {
    status.waiting = old_pod_waiting(context);
  } else if (opening.wait == Opening::Wait::kBackoff && run != status.runs.end()) {
    status.waiting = next_attempt_waiting(context, status, *run, last.lost_together);
  } else {
    status.waiting = turn_waiting(context, status);
  }
}

// The phase of a job that goes on.
void settle_phase(const Context& context, Status& status) {
  const bool open = std::any_of(status.runs.begin(), status.runs.end(),
                                [](const Run& run) { return run.open(); });
  if (open) {
    status.phase = Phase::kRunning;
  } else if (status.phase == Phase::kRunning) {
    status.phase = Phase::kBackoff;
    clear_condition(status, "Stalled", "Started", context.now);
  }
}

// Records the ends that are due, and opens what may open instead.
void end_runs(const Context& context, const std::vector<Step>& steps, Plan& plan) {
  WriteStatus write = start_write(context);
  std::vector<AttemptsEnd> ends;
  std::set<std::int64_t> just_ended;
  for (const auto& [place, step] : steps) {
    if (!step.end) continue;
    ends.push_back(end_attempt(of_run(context, place), *step.end, write));
    just_ended.insert(ends.back().run.index);
  }
  if (!conclude(context, ends.back(), write.status)) {
    const Opening opening = open_runs(context, just_ended, write.status);
    settle_phase(context, write.status);
    if (write.status.phase != Phase::kRunning) {
      say_why_not_open(context, opening, ends.back(), write.status);
    }
  }
  for (const AttemptsEnd& end : ends) tell_of_end(end, write);
  if (write.status.phase == Phase::kFailed) {
    const Condition* const failed = write.status.condition("Failed");
    write.events.push_back(Event{true, failed->reason, "Finish", failed->message});
  }
  plan.write(std::move(write));
}

// Nothing has ended: what the open runs wait for, if there is something new.
void tell_of_runs(const Context& context, const std::vector<Step>& steps, Plan& plan) {
  Status status = context.job.status;
  const RunStep* telling = nullptr;  // the first whose words are due
  bool at_once = false;
  for (const auto& [place, step] : steps) {
    if (!step.waiting) continue;
    status.runs[place] = step.run;
    at_once = at_once || step.at_once;
    if (!telling) telling = &step;
  }
  if (!telling) return;
  status.waiting = telling->waiting;
  if (telling->stalled.value_or(false)) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else if (telling->stalled) {
    clear_condition(status, "Stalled", "Started", context.now);
  }
  plan.inform(std::move(status), at_once);
}

// True: some were opened.
bool open_more(const Context& context, bool any_open, Plan& plan) {
  WriteStatus write = start_write(context);
  const Opening opening = open_runs(context, {}, write.status);
  if (opening.due) plan.wake_at(*opening.due);
  if (opening.opened) {
    plan.write(std::move(write));
  } else if (!any_open) {
    wait_to_open(context, opening, plan);
  }
  return opening.opened;
}

}  // namespace

void decide_active(const Context& context, Plan& plan) {
  const std::vector<Step> steps = decide_runs(context);
  const auto any = [&](auto is_so) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& one) { return is_so(one.step); });
  };
  if (any([](const RunStep& step) { return step.confirm; })) return plan.confirm();
  for (const Step& one : steps) {
    if (one.step.invalid) return plan.write(fail_for_template(context, *one.step.invalid));
  }
  if (any([](const RunStep& step) { return step.end.has_value(); })) {
    return end_runs(context, steps, plan);
  }
  if (steps.empty()) {
    if (end_idle(context, plan)) return;
    if (context.spec.suspend) {
      WriteStatus write = start_write(context);
      suspend(context, write.status);
      return plan.write(std::move(write));
    }
  }
  if (context.deadline) plan.wake_at(*context.deadline);
  for (const auto& [place, step] : steps) {
    if (step.wake_after) plan.wake_in(*step.wake_after);
    if (step.create) plan.create_pod(context.job.status.runs[place]);
    if (step.awaits_creation) plan.await_creation();
  }
  if (!open_more(context, !steps.empty(), plan)) tell_of_runs(context, steps, plan);
}

}  // namespace holdfast::reconciler
