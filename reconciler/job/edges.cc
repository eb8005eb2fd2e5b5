#include "reconciler/job/edges.h"

#include <algorithm>

#include "reconciler/job/conditions.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/stages.h"
#include "reconciler/job/waiting.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"

namespace holdfast::reconciler {
namespace {

void end(const Context& context, Status& status, Phase phase) {
  status.phase = phase;
  status.completion_time = context.now;
  if (!status.start_time) status.start_time = context.now;
  status.waiting.reset();
  status.runs.clear();
  clear_condition(status, "Stalled", "Finished", context.now);
  clear_condition(status, "Suspended", "Finished", context.now);
}

// No attempt is open from now on, and the next one may start at once.
void close_runs(const Context& context, Status& status) {
  for (Run& run : status.runs) run.next_attempt_time = context.now;
}

}  // namespace

void forget_left_out_runs(const Spec& spec, Status& status) {
  const IndexSet all = spec.all_indexes();
  std::erase_if(status.runs, [&](const Run& run) { return !all.contains(run.index); });
}

bool any_pod_lives(const Context& context) {
  return std::any_of(context.view.pods.begin(), context.view.pods.end(), [&](const PodView& pod) {
    return is_ours(context.view, pod) && pod_lives(context, pod);
  });
}

std::int64_t last_attempt(const Context& context) {
  const std::int64_t recorded = context.job.status.attempt;
  const std::int64_t seen = context.view.observed.highest_attempt;
  std::int64_t last = seen - recorded <= kMostAhead ? std::max(recorded, seen) : recorded;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod)) continue;
    const std::int64_t other = attempt_in_name(context.job.name, context.job.uid, pod.name);
    if (other - recorded <= kMostAhead) last = std::max(last, other);
  }
  return last;
}

void start_attempt(const Context& context, Status& status, Run& run,
                   const PoolView::Worker* worker) {
  status.phase = Phase::kRunning;
  ++status.attempt;
  run.attempt = status.attempt;
  run.attempts = std::min(run.attempts + 1, kCountLimit);
  run.pod_name = pod_name(context.job.name, context.job.uid, run.attempt);
  run.pod_uid.clear();
  run.node_name.clear();
  run.progress.clear();
  run.refused.clear();
  run.next_attempt_time.reset();
  run.worker_name = worker ? worker->name : "";
  run.worker_uid = worker ? worker->uid : "";
  run.worker_lease_duration = worker ? worker->lease_duration : seconds(0);
  // The milliseconds are the time; the six digits after them are this process's mark.
  run.start_time = std::chrono::floor<std::chrono::milliseconds>(context.now) +
                   Duration(std::max<std::uint64_t>(context.view.observed.nonce % 1'000'000, 1));
  if (!status.start_time) status.start_time = context.now;
  if (!status.stages.empty()) {
    StageStatus& stage = status.stages[status.stage];
    stage.phase = StagePhase::kRunning;
    if (!stage.start_time) stage.start_time = context.now;
  }
  status.waiting.reset();  // the clock of the job runs from now on
  // startDeadlineSeconds counts from the pod's binding, which is still to come.
  const std::string attempt = "attempt " + std::to_string(run.attempt);
  status.waiting =
      worker
          ? Waiting{Reason::kWorkerStarting, "worker " + worker->name + " is told of " + attempt,
                    attempt + " runs once the worker has begun it",
                    active_deadline(context, status)}
          : Waiting{Reason::kPodStarting, "pod " + run.pod_name + " is being created and started",
                    attempt + " runs once its pod has started", active_deadline(context, status)};
  clear_condition(status, "Stalled", "Started", context.now);
}

std::optional<JobEnd> recorded_end(const Status& status) {
  return status.stages.empty() ? decided_end(status) : recorded_stage_end(status);
}

std::optional<JobEnd> decided_end(const Status& status) {
  for (const bool succeeds : {false, true}) {
    const Condition* const found =
        status.condition(succeeds ? "SuccessCriteriaMet" : "FailureTarget");
    if (found && found->status) return JobEnd{succeeds, found->reason, found->message};
  }
  return std::nullopt;
}

void record_end(const Context& context, const JobEnd& end, WriteStatus& write) {
  if (!write.status.stages.empty()) return record_stage_end(context, end, write);
  const bool is_new = !recorded_end(write.status);
  set_condition(write.status, end.succeeds ? "SuccessCriteriaMet" : "FailureTarget", true,
                end.reason, end.message, context.now);
  if (is_new && !end.succeeds) {
    write.events.push_back(Event{true, end.reason, "Finish", end.message});
  }
}

void finish(const Context& context, const JobEnd& reached, WriteStatus& write) {
  record_end(context, reached, write);
  if (!write.status.stages.empty()) return leave_stage(context, write);
  end_as(context, reached, write);
}

void end_as(const Context& context, const JobEnd& reached, WriteStatus& write) {
  Status& status = write.status;
  end(context, status, reached.succeeds ? Phase::kSucceeded : Phase::kFailed);
  if (reached.succeeds)
    write.events.push_back(Event{false, "Completed", "Finish", "Job completed"});
  set_condition(status, reached.succeeds ? "Complete" : "Failed", true, reached.reason,
                reached.message, context.now);
  if (!reached.succeeds) {
    set_condition(status, "Stalled", true, reached.reason, reached.message, context.now);
  }
}

void finish_cancelled(const Context& context, WriteStatus& write) {
  if (write.status.stages.empty()) return end_as_cancelled(context, write);
  finish(context, {false, "Cancelled", "spec.cancel is true", JobEnd::Cause::kCancel}, write);
}

void end_as_cancelled(const Context& context, WriteStatus& write) {
  end(context, write.status, Phase::kCancelled);
  set_condition(write.status, "Cancelled", true, "Cancelled", "spec.cancel is true", context.now);
  write.events.push_back(Event{false, "Cancelled", "Finish", "the job was cancelled"});
}

void suspend(const Context& context, Status& status) {
  status.phase = Phase::kSuspended;
  close_runs(context, status);
  status.waiting = suspended_waiting();
  clear_condition(status, "Stalled", "Suspended", context.now);
  set_condition(status, "Suspended", true, "JobSuspended", "Job suspended", context.now);
}

void start_cancelling(const Context& context, Status& status) {
  status.phase = Phase::kCancelling;
  close_runs(context, status);
  clear_condition(status, "Stalled", "Cancelling", context.now);
  status.waiting =
      Waiting{Reason::kPodTerminating, "the job was cancelled; its pod is being stopped",
              "the job is Cancelled when the pod has ended", std::nullopt};
}

void resume(const Context& context, Status& status) {
  count_suspension(context, status);
  status.phase = Phase::kPending;
  close_runs(context, status);
  forget_left_out_runs(context.spec, status);
  status.waiting =
      Waiting{Reason::kResuming, "the job was resumed", "its next attempt starts", std::nullopt};
  set_condition(status, "Suspended", false, "JobResumed", "Job resumed", context.now);
}

}  // namespace holdfast::reconciler
