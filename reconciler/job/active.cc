// What becomes of the job's open runs, and which runs open next.
#include <algorithm>
#include <utility>

#include "reconciler/job/conditions.h"
#include "reconciler/job/edges.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/pods_left.h"
#include "reconciler/job/reporting.h"
#include "reconciler/job/waiting.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/running.h"
#include "reconciler/run/slot.h"

namespace holdfast::reconciler {
namespace {

// One write records at most so many ends; the next one has the others.
constexpr std::size_t kEndsAtOnce = 500;

// If spec.parallelism was lowered, the open runs with the highest indexes have to stop, of those
// that do not end by themselves.
std::vector<RunStepAt> decide_runs(const Context& context) {
  std::vector<RunStepAt> steps;
  const auto& runs = context.job.status.runs;
  std::int64_t stay = 0;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    if (!runs[position].open()) continue;
    RunContext run = of_run(context, position);
    RunStep step = decide_run(run);
    run.excess = !std::holds_alternative<AttemptEnd>(step) && ++stay > context.spec.parallelism;
    steps.push_back({position, run.excess ? decide_run(run) : std::move(step)});
  }
  return steps;
}

// The positions in status.runs of the runs that are still open in `next`.
std::vector<std::size_t> still_open(const Context& context, const Status& next) {
  std::vector<std::size_t> positions;
  const auto& runs = context.job.status.runs;
  auto run = next.runs.begin();  // both lists are in order
  for (std::size_t position = 0; position < runs.size(); ++position) {
    while (run != next.runs.end() && run->index < runs[position].index) ++run;
    if (run == next.runs.end()) break;
    if (run->index == runs[position].index && run->open()) positions.push_back(position);
  }
  return positions;
}

// Stops the open runs that were read live. A success that the read has found counts. Any other end
// of theirs no longer matters, because the job's end is known.
void stop_open_runs(const Context& context, const JobEnd& reached, std::vector<AttemptsEnd>& ends,
                    WriteStatus& write) {
  for (const std::size_t position : still_open(context, write.status)) {
    if (ends.size() >= kEndsAtOnce) return;
    if (!is_read(context, position)) continue;
    const RunContext run = of_run(context, position);
    const RunStep step = decide_run(run);
    const auto* const end = std::get_if<AttemptEnd>(&step);
    const bool succeeded = end && end->verdict.outcome == Outcome::kSucceeded;
    ends.push_back(
        end_attempt(run, succeeded ? *end : AttemptEnd{stopped_by(run, reached.reason)}, write));
  }
}

// The runs that this end stops or leaves behind, and that no live look has read. The watches may
// not show their pods.
std::vector<std::int64_t> unread_runs(const Context& context, const Status& next) {
  std::vector<std::int64_t> unread = unseen_runs(context);
  for (const std::size_t position : still_open(context, next)) {
    const std::int64_t index = context.job.status.runs[position].index;
    const bool is_listed = std::find(unread.begin(), unread.end(), index) != unread.end();
    if (!is_listed && !is_read(context, position)) unread.push_back(index);
  }
  return unread;
}

// Records how the job ends. It has ended once none of its pods runs, whoever stopped it and when. A
// lost attempt was given up, so nobody waits for its pod.
void end_job(const Context& context, const JobEnd& reached, std::vector<AttemptsEnd> ends,
             WriteStatus write, Plan& plan) {
  const std::vector<std::int64_t> unread = unread_runs(context, write.status);
  if (plan.confirm(unread)) return;
  // This look was at other runs, or some reads failed. The next look reads the rest.
  const bool has_news = !ends.empty() || !recorded_end(context.job.status);
  stop_open_runs(context, reached, ends, write);
  if (ends.empty() && !has_news) return;
  record_ends(ends, write.status);
  std::unordered_set<std::int64_t> lost;
  for (const AttemptsEnd& end : ends) {
    if (end.verdict.outcome == Outcome::kLost) lost.insert(end.run.attempt);
  }
  const std::optional<PodsLeft> left = pods_to_await(context, plan, std::move(lost));
  Status& status = write.status;
  const bool open = status.has_open_run();
  // A write before this one may have stopped others.
  const bool not_the_first = recorded_end(context.job.status).has_value();
  const bool may_run =
      last_creation(context.view) || !unread.empty() || (left && !left->given_up());
  if (open || not_the_first || may_run) {
    record_end(context, reached, write);
    settle_phase(context, status);
    status.waiting = stopping_waiting(context, reached);
  } else {
    finish(context, reached, write);
  }
  // The Event of the end itself comes last.
  std::vector<Event> last = std::exchange(write.events, {});
  report_ends(context.spec, ends, write);
  write.events.insert(write.events.end(), last.begin(), last.end());
  plan.write(std::move(write));
}

// What runs that could not open wait for. True: a live read comes first.
bool expect_to_open(const Opening& opening, Plan& plan) {
  if (opening.due) plan.wake_at(*opening.due);
  if (opening.wants_turn) plan.await_creation();
  if (opening.wants_guard) plan.wake_in(kGuardLook);
  if (opening.wants_permit) plan.await_permit();
  plan.await_slots(opening.wants_slots, opening.wants_empty);
  return plan.confirm(opening.to_confirm);
}

bool has_urgent_words(const std::vector<RunStepAt>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const RunStepAt& one) {
    const auto* const run = std::get_if<GoesOn>(&one.step);
    return run && run->waiting && run->at_once;
  });
}

// A limit of the whole job was lowered below what is spent. With one run, its attempt ends first.
bool is_overspent(const Context& context) {
  const Spec& spec = context.spec;
  const Status& status = context.job.status;
  return spec.many_runs() && !spec.cancel &&
         (spent_budget(spec, status) || has_too_many_failed(spec, status));
}

// Ends of attempts or runs are due. Records them, and opens what may open instead.
void end_runs(const Context& context, const std::vector<RunStepAt>& steps, Plan& plan) {
  WriteStatus write = start_write(context);
  record_places(steps, context.job.status, write.status);
  std::vector<AttemptsEnd> ends;
  std::set<std::int64_t> just_ended;
  std::size_t losses = 0;
  for (const auto& [position, step] : steps) {
    const auto* const end = std::get_if<AttemptEnd>(&step);
    if (!end || ends.size() == kEndsAtOnce) continue;
    ends.push_back(end_attempt(of_run(context, position), *end, write));
    just_ended.insert(ends.back().run.index);
    if (budget_of(ends.back().verdict.outcome) == Budget::kDisruptions) ++losses;
  }
  Status& status = write.status;
  fail_overspent_runs(context, write);
  if (const auto reached = judge_job(context, ends, status)) {
    return end_job(context, *reached, std::move(ends), std::move(write), plan);
  }
  record_ends(ends, status);
  const bool open = status.has_open_run();
  const AttemptsEnd* const last = ends.empty() ? nullptr : &ends.back();
  if (!open && context.spec.cancel) {
    start_cancelling(context, status);
  } else if (!open && context.spec.suspend) {
    suspend(context, status);
  } else {
    const Opening opening = open_runs(context, just_ended, losses, status);
    // Ends may come all the time, and the runs that open beside them must not wait for the last.
    if (expect_to_open(opening, plan)) return;
    settle_phase(context, status);
    if (status.phase != Phase::kRunning) {
      say_why_not_open(context, opening, last, status);
    } else if (context.spec.many_runs()) {
      const bool reports = report_worst_run(context, steps, status);
      // What is on record may be about a run that has ended.
      if (!reports && !opening.opened) status.waiting = begun_waiting(context);
    }
  }
  report_ends(context.spec, ends, write);
  plan.write_in_turn(std::move(write), has_urgent_words(steps));
}

// Nothing has ended: what the open runs wait for, if there is something new.
void report_runs(const Context& context, const std::vector<RunStepAt>& steps, Plan& plan) {
  Status status = context.job.status;
  const bool is_sooner = bring_backoffs_forward(context, status);
  record_places(steps, context.job.status, status);
  const bool reports = report_worst_run(context, steps, status);
  if (!report_version(context, status) && !reports && !is_sooner) return;
  plan.inform(std::move(status), is_sooner || has_urgent_words(steps));
}

// True: some were opened.
bool open_more(const Context& context, const std::vector<RunStepAt>& steps, Plan& plan) {
  WriteStatus write = start_write(context);
  const Opening opening = open_runs(context, {}, 0, write.status);
  if (expect_to_open(opening, plan)) return true;
  if (opening.opened) {
    record_places(steps, context.job.status, write.status);
    if (context.spec.many_runs()) report_worst_run(context, steps, write.status);
    plan.write_in_turn(std::move(write), has_urgent_words(steps));
  } else if (steps.empty()) {
    wait_to_open(context, opening, plan);
  }
  return opening.opened;
}

// The job's end is on record: its pods are being stopped.
void decide_stopping(const Context& context, const JobEnd& reached, Plan& plan) {
  if (context.job.status.has_open_run()) {
    return end_job(context, reached, {}, start_write(context), plan);
  }
  const std::optional<PodsLeft> left = pods_to_await(context, plan);
  if (wait_for_pods(context, left, stopping_waiting(context, reached), plan)) return;
  if (plan.looks_at(unseen_runs(context), creations_to_look_at(context.view))) return;
  WriteStatus write = start_write(context);
  finish(context, reached, write);
  plan.write(std::move(write));
}

}  // namespace

Phase idle_phase(const Spec& spec, const Status& status) {
  const bool none_waits = status.runs.empty() || spec.parallelism == 0;
  // A job that is Pending, because it was resumed, stays so until a run opens.
  const bool stays = status.phase == Phase::kPending;
  return none_waits || stays ? Phase::kPending : Phase::kBackoff;
}

void settle_phase(const Context& context, Status& status) {
  if (status.has_open_run()) {
    status.phase = Phase::kRunning;
    return;
  }
  status.phase = idle_phase(context.spec, status);
  clear_condition(status, "Stalled", "Started", context.now);
}

void decide_active(const Context& context, Plan& plan) {
  if (const auto reached = recorded_end(context.job.status)) {
    return decide_stopping(context, *reached, plan);
  }
  const std::vector<RunStepAt> steps = decide_runs(context);
  std::vector<std::int64_t> unconfirmed;
  bool ends = false;
  for (const auto& [position, step] : steps) {
    const Run& run = context.job.status.runs[position];
    if (const auto* const failed = std::get_if<TemplateFails>(&step)) {
      const JobEnd reached{false, to_string(Reason::kPodTemplateInvalid), failed->why};
      return end_job(context, reached, {}, start_write(context), plan);
    }
    if (std::holds_alternative<ReadFirst>(step)) unconfirmed.push_back(run.index);
    ends = ends || std::holds_alternative<AttemptEnd>(step);
    if (const auto* const open = std::get_if<GoesOn>(&step)) {
      if (open->wake_after) plan.wake_in(*open->wake_after);
      if (open->create) plan.create_pod(run);
    }
  }
  if (plan.confirm(unconfirmed)) return;
  if (ends || has_overspent_run(context) || is_overspent(context)) {
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
  // Without open runs, open_more() has reported what the job waits for.
  if (!open_more(context, steps, plan) && !steps.empty()) report_runs(context, steps, plan);
}

}  // namespace holdfast::reconciler
