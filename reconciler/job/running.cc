// Phase Running: what becomes of the job's open run.
#include "reconciler/run/running.h"

#include "reconciler/job/phases.h"

namespace holdfast::reconciler {
namespace {

WriteStatus fail_for_template(const Context& context, const std::string& message) {
  WriteStatus write;
  write.status = context.job.status;
  finish_failed(context, write.status, Reason::kPodTemplateInvalid, message);
  write.events.push_back(Event{true, "PodTemplateInvalid", "Finish", message});
  return write;
}

void tell(const Context& context, const RunStep& step, Plan& plan) {
  if (!step.waiting) return;
  Status status = context.job.status;
  status.runs.front() = step.run;
  status.waiting = step.waiting;
  if (step.stalled.value_or(false)) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else if (step.stalled) {
    clear_condition(status, "Stalled", "Started", context.now);
  }
  plan.inform(std::move(status), step.at_once);
}

}  // namespace

void decide_running(const Context& context, Plan& plan) {
  const RunContext run = of_run(context, 0);
  const RunStep step = decide_run(run);
  if (step.confirm) return plan.confirm();
  if (step.invalid) return plan.write(fail_for_template(context, *step.invalid));
  if (step.end) return plan.write(end_attempt(run, *step.end));
  if (context.deadline) plan.wake_at(*context.deadline);
  if (step.wake_after) plan.wake_in(*step.wake_after);
  if (step.create) plan.create_pod();
  if (step.awaits_creation) plan.await_creation();
  tell(context, step, plan);
}

}  // namespace holdfast::reconciler
