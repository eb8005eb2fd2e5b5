#include "reconciler/job/job_clock.h"

#include <algorithm>

#include "reconciler/run/authorship.h"
#include "reconciler/run/pod_times.h"

namespace holdfast::reconciler {
namespace {

bool says_gated(const Status& status) {
  return status.waiting && status.waiting->reason == Reason::kPodGated;
}

// Before the first attempt the clock does not run.
bool stands_queued(const Status& status) { return status.start_time && status.says_queued(); }

// Whole seconds, as in status, so that the rounding errors of many stops cancel out. No stop is
// longer than the job's life.
seconds between(const Context& context, Time from, Time to) {
  const auto whole = [](Time time) { return std::chrono::floor<seconds>(time); };
  return std::max(whole(to) - whole(std::max(from, context.job.created)), seconds(0));
}

// The stage that the job was in when the stop began has it too.
void add(const Context& context, seconds stop, Status& next) {
  next.suspended = std::min(next.suspended + stop, kSuspendedLimit);
  if (next.stages.empty()) return;
  StageStatus& stage = next.stages[context.job.status.stage];
  const StageStatus& before = context.job.status.stages[context.job.status.stage];
  if (!before.start_time || has_ended(before.phase)) return;
  stage.suspended = std::min(stage.suspended + stop, kSuspendedLimit);
}

std::optional<Time> end_of(const std::optional<seconds>& limit, const std::optional<Time>& start,
                           seconds suspended) {
  return limit && start ? std::optional(*start + *limit + suspended) : std::nullopt;
}

std::optional<Time> job_deadline(const Context& context, const Status& status) {
  return end_of(context.spec.active_deadline, status.start_time, status.suspended);
}

std::optional<Time> stage_deadline(const Context& context, const Status& status) {
  if (status.stages.empty()) return std::nullopt;
  const StageStatus& stage = status.stages[status.stage];
  return end_of(context.spec.stage_deadline, stage.start_time, stage.suspended);
}

}  // namespace

// How long the pod was gated, without the time already in suspendedSeconds. If nobody looked
// meanwhile, the time ends when the pod was bound.
seconds uncounted_gate(const Context& context) {
  const Status& status = context.job.status;
  if (stands_queued(status)) {
    return between(context, status.waiting->since.value_or(context.now), context.now);
  }
  if (!says_gated(status)) return seconds(0);
  const Time intent = status.run().start_time.value_or(context.now);  // if `since` was removed
  Time until = context.now;
  for (std::size_t position = 0; position < status.runs.size(); ++position) {
    const RunContext run = of_run(context, position);
    if (!run.pod || run.pod->placement() != Placement::kBound) continue;
    until = std::min(until, placed_since(run, *run.pod));
  }
  return between(context, status.waiting->since.value_or(intent), until);
}

bool is_gated(const Context& context, const Status& next) {
  const auto& before = context.job.status.runs;
  std::size_t position = 0;  // both lists are in order
  for (const Run& run : next.runs) {
    if (!run.open()) continue;
    while (position < before.size() && before[position].index < run.index) ++position;
    if (position == before.size() || before[position].attempt != run.attempt) return false;
    const PodView* const pod = context.pods[position];
    if (!pod || pod->placement() != Placement::kGated) return false;
  }
  return true;
}

std::optional<Time> active_deadline(const Context& context, const Status& status) {
  const Status& now = context.job.status;
  const bool stands = status.phase == Phase::kSuspended || stands_queued(status) ||
                      (now.phase == Phase::kRunning && is_gated(context, now));
  const std::optional<Time> job = job_deadline(context, status);
  const std::optional<Time> stage = stage_deadline(context, status);
  if (stands || (!job && !stage)) return std::nullopt;
  const Time first = job && stage ? std::min(*job, *stage) : job.value_or(*stage);
  return first + uncounted_gate(context);
}

std::optional<Time> active_deadline(const Context& context) {
  return active_deadline(context, context.job.status);
}

bool is_jobs_deadline(const Context& context) {
  const std::optional<Time> job = job_deadline(context, context.job.status);
  const std::optional<Time> stage = stage_deadline(context, context.job.status);
  return job && (!stage || *job <= *stage);
}

bool job_is_out_of_time(const Context& context, const Status& status) {
  const std::optional<Time> end =
      end_of(context.job.stages.front().spec.active_deadline, status.start_time, status.suspended);
  return end && context.now >= *end + uncounted_gate(context);
}

// A queue that is missing or made again is the same wait.
bool goes_on_waiting(const Status& before, const Status& next) {
  if (!before.waiting || !next.waiting || before.attempt != next.attempt) return false;
  return before.waiting->reason == next.waiting->reason ||
         (before.says_queued() && next.says_queued());
}

void count_gated_time(const Context& context, Status& next) {
  if (!goes_on_waiting(context.job.status, next)) add(context, uncounted_gate(context), next);
}

void count_suspension(const Context& context, Status& next) {
  const Condition* const suspended = next.condition("Suspended");
  if (!next.start_time || !suspended || !suspended->status) return;
  add(context, between(context, suspended->last_transition_time, context.now), next);
}

}  // namespace holdfast::reconciler
