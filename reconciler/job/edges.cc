#include "reconciler/job/edges.h"

#include <algorithm>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/stages.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/job/success_policy.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/liveness.h"
#include "reconciler/run/slot.h"

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

std::string counted(std::int64_t attempts, const std::string& one, const std::string& many) {
  return std::to_string(attempts) + (attempts == 1 ? " attempt " + one : " attempts " + many);
}

}  // namespace

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now) {
  Condition* found = nullptr;
  for (Condition& condition : status.conditions) {
    if (condition.type == type) found = &condition;
  }
  if (!found) {
    // kstatus uses the first that is true, and a job that needs a human is not in progress.
    const auto place = type == "Stalled" ? status.conditions.begin() : status.conditions.end();
    found = &*status.conditions.insert(place, Condition{type, !value, "", "", now});
  }
  if (found->status != value || found->unknown) {
    found->last_transition_time = std::chrono::floor<seconds>(now);
  }
  found->status = value;
  found->unknown = false;
  found->observed_generation.reset();
  found->reason = reason;
  found->message = bounded(message);
}

void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now) {
  const Condition* const condition = status.condition(type);
  if (condition && condition->status) set_condition(status, type, false, reason, "", now);
}

void forget_left_out_runs(const Spec& spec, Status& status) {
  const IndexSet all = spec.all_indexes();
  std::erase_if(status.runs, [&](const Run& run) { return !all.contains(run.index); });
}

bool any_pod_lives(const Context& context) {
  return std::any_of(context.view.pods.begin(), context.view.pods.end(), [&](const PodView& pod) {
    return is_ours(context.view, pod) && pod_lives(context, pod);
  });
}

Waiting old_slot_waiting(const Context& context) {
  return Waiting{
      Reason::kWorkerStopping, "the last attempt is being stopped on " + workers_left(context),
      "the next attempt starts when nothing of it runs there any more, or when the worker is cut off",
      active_deadline(context)};
}

Waiting worker_waiting(const Context& context, const Status& status) {
  const std::string& pool = context.spec.pool->name;
  if (!context.view.observed.pool.unknown.empty())
    return version_waiting(context, active_deadline(context, status));
  if (context.view.observed.pool.no_pool) {
    return Waiting{Reason::kPoolMissing,
                   "there is no WorkerPool " + pool + " in the job's namespace",
                   "create the WorkerPool, or make the job again with a pool that exists",
                   active_deadline(context, status)};
  }
  return Waiting{Reason::kWorkerAwaited, "no worker of the WorkerPool " + pool + " has a free slot",
                 "attempt " + std::to_string(status.attempt + 1) +
                     " starts when one has; kubectl get workerpool " + pool + " shows the workers",
                 active_deadline(context, status)};
}

Waiting empty_worker_waiting(const Context& context, const Status& status) {
  const std::string& pool = context.spec.pool->name;
  return Waiting{
      Reason::kAwaitsEmptyWorker,
      "its last worker ran out of memory with several attempts on it, and no worker of "
      "the WorkerPool " +
          pool + " is empty",
      "attempt " + std::to_string(status.attempt + 1) +
          " starts alone on a worker once one has ended all that it runs; the oldest such job is first",
      active_deadline(context, status)};
}

Waiting old_pod_waiting(const Context& context) {
  if (context.spec.pool && !workers_left(context).empty()) return old_slot_waiting(context);
  std::string pods;
  for (const PodView& pod : context.view.pods) {
    if (!is_ours(context.view, pod) || !pod_lives(context, pod)) continue;
    pods += (pods.empty() ? "" : ", ") + pod.name +
            (pod.node_name.empty() ? "" : " on node " + pod.node_name);
  }
  const OpenCreation* const creation = last_creation(context.view);
  if (pods.empty() && creation) {
    if (creation->left > Duration::zero()) return creation_waiting(context, *creation);
    pods = creation->pod_name;  // the watch does not show it yet
  }
  return Waiting{Reason::kOldPodNotEnded,
                 "podReplacementPolicy is Failed and the old pod has not ended: " + pods,
                 "the next attempt starts when it has ended, or when its node object is deleted",
                 active_deadline(context)};
}

Waiting creation_waiting(const Context& context, const OpenCreation& creation) {
  return Waiting{Reason::kPodCreationUnanswered,
                 "pod " + creation.pod_name +
                     " may still be created: the answer to a request for it is missing",
                 "the operator stops the pod if it appears; else the job goes on when the "
                 "answer is there, or at waiting.deadline",
                 context.now + creation.left};
}

Waiting turn_waiting(const Context& context, const Status& status) {
  return Waiting{Reason::kPodCreationQueued,
                 "the job's namespace has used up its pod creations in flight",
                 "attempt " + std::to_string(status.attempt + 1) +
                     " starts when the API server has answered one of them",
                 active_deadline(context, status)};
}

Waiting queue_waiting(const Context& context) {
  const std::string& queue = context.job.queue->name;
  if (context.view.observed.permit.no_queue) {
    return Waiting{
        Reason::kQueueMissing, "there is no JobQueue " + queue + " in the job's namespace",
        "create the JobQueue, or make the job again with a queue that exists", std::nullopt};
  }
  return Waiting{Reason::kQueued, "the job waits in the JobQueue " + queue,
                 "it starts when the queue gives it a permit; kubectl get jobqueue " + queue +
                     " -o wide says why none is free",
                 std::nullopt};
}

std::optional<JobEnd> spent_budget(const Spec& spec, const Status& status) {
  const std::int64_t failures = status.stage_failures();
  if (failures > spec.backoff_limit) {
    return JobEnd{false, to_string(Reason::kBackoffLimitExceeded),
                  counted(failures, "failed", "failed") + ", backoffLimit forgives " +
                      std::to_string(spec.backoff_limit)};
  }
  // A run that is lost too often fails alone.
  if (spec.many_runs() && spec.backoff_limit_per_index) return std::nullopt;
  std::int64_t lost = 0;
  std::string whose;
  for (const Run& run : status.runs) {
    // An open run of many has its attempt end first.
    if ((spec.many_runs() && run.open()) || run.disruptions <= lost) continue;
    lost = run.disruptions;
    if (spec.many_runs()) whose = " of run " + std::to_string(run.index);
  }
  if (lost <= spec.disruption_limit) return std::nullopt;
  return JobEnd{false, to_string(Reason::kDisruptionLimitExceeded),
                counted(lost, "was lost", "were lost") + whose + ", disruptionLimit forgives " +
                    std::to_string(spec.disruption_limit)};
}

bool has_too_many_failed(const Spec& spec, const Status& status) {
  return spec.max_failed_indexes && status.failed.size() > *spec.max_failed_indexes;
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

Waiting suspended_waiting() {
  return Waiting{Reason::kSuspended, "spec.suspend is true; no pod runs",
                 "set spec.suspend to false to go on", std::nullopt};
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

Waiting next_attempt_waiting(const Context& context, const Status& status, const AttemptsEnd& end,
                             const Run& run) {
  const std::string ended =
      "attempt " + std::to_string(end.run.attempt) + " ended as " + to_string(end.verdict.outcome);
  Waiting waiting{Reason::kRetryBackoff, ended + "; the next one waits its back-off",
                  "attempt " + std::to_string(status.attempt + 1) + " starts",
                  run.next_attempt_time};
  if (end.verdict.outcome == Outcome::kDeferred) {
    waiting.reason = Reason::kDeferred;
    // The shared entry, if all its deferrals are this run's.
    const HistoryEntry* const last = status.history.empty() ? nullptr : &status.history.back();
    const bool is_its = last && last->attempt == end.run.attempt && last->count == run.deferrals;
    const auto since = is_its ? last->start_time : std::nullopt;
    waiting.message = "attempt " + std::to_string(end.run.attempt) + " was deferred, " +
                      std::to_string(run.deferrals) + " times in a row" +
                      (since ? " since " + format_time(*since) : "") + "; " + end.verdict.message;
  }
  if (end.lost_together > 0) {
    waiting.reason = Reason::kRestartsSpread;
    waiting.message = ended + " in an outage of the API server, one of about " +
                      std::to_string(end.lost_together) + "; their next attempts are spread";
  }
  if (context.deadline) waiting.deadline = std::min(*context.deadline, *waiting.deadline);
  return waiting;
}

namespace {

std::optional<JobEnd> judge_failure(const Context& context, const std::vector<AttemptsEnd>& ends,
                                    const Status& status) {
  const Spec& spec = context.spec;
  const AttemptsEnd* const last = ends.empty() ? nullptr : &ends.back();
  bool cancelled = false;
  for (const AttemptsEnd& end : ends) {
    if (end.fails_job) {
      return JobEnd{false, to_string(end.fails_job->reason), end.fails_job->message};
    }
    cancelled = cancelled || end.verdict.reason == Reason::kCancelled;
  }
  // The request came first, and its attempts cost nothing.
  if (cancelled) return std::nullopt;
  if (std::optional<JobEnd> spent = spent_budget(spec, status)) {
    if (last) {
      // Not what its container wrote: targets of notifications get this text, and logs stay here.
      spent->message +=
          "; the last one: " + last->verdict.reason.text() + ": " + last->verdict.message;
    }
    return spent;
  }
  if (has_too_many_failed(spec, status)) {
    return JobEnd{false, to_string(Reason::kMaxFailedIndexesExceeded),
                  "Job has exceeded the specified maximal number of failed indexes"};
  }
  if (!status.failed.empty() && status.completed.size() + status.failed.size() >= spec.wanted()) {
    return JobEnd{false, to_string(Reason::kFailedIndexes), "Job has failed indexes"};
  }
  return std::nullopt;
}

// What kept a run from running when the time was over, for the job's condition.
std::string what_kept_back(const Context& context, const std::vector<AttemptsEnd>& ends) {
  const auto& runs = context.job.status.runs;
  for (const AttemptsEnd& end : ends) {
    if (end.verdict.reason != Reason::kRunsStopped) continue;
    const auto run = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& one) { return one.index == end.run.index; });
    const std::string why =
        why_not_running(of_run(context, static_cast<std::size_t>(run - runs.begin())));
    if (why.empty()) continue;
    return (context.spec.many_runs() ? "; run " + std::to_string(end.run.index) : "") + why;
  }
  const auto& history = context.job.status.history;
  const bool in_backoff = ends.empty() && !history.empty();
  return in_backoff && history.back().outcome == Outcome::kStartTimeout
             ? "; attempt " + std::to_string(history.back().attempt) + ": " + history.back().message
             : "";
}

// The time is over. An open run may have succeeded in time, as long as it is neither read nor
// stopped. Requests to cancel or to suspend come first, if they have stopped runs.
std::optional<JobEnd> judge_time(const Context& context, const std::vector<AttemptsEnd>& ends,
                                 const Status& status) {
  if (!context.deadline || context.now < *context.deadline) return std::nullopt;
  const bool asked = context.spec.cancel || context.spec.suspend;
  const bool open = std::any_of(status.runs.begin(), status.runs.end(),
                                [](const Run& run) { return run.open(); });
  if (open || (asked && !ends.empty())) return std::nullopt;
  return JobEnd{false, to_string(Reason::kDeadlineExceeded),
                deadline_message(context) + what_kept_back(context, ends),
                context.deadline_is_jobs ? JobEnd::Cause::kJobDeadline : JobEnd::Cause::kItsOwn};
}

}  // namespace

std::optional<JobEnd> judge_job(const Context& context, const std::vector<AttemptsEnd>& ends,
                                const Status& status) {
  const bool completed = status.completed.size() >= context.spec.wanted();
  std::optional<JobEnd> failure = judge_failure(context, ends, status);
  if (failure && !(completed && !context.spec.many_runs())) return failure;
  if (completed) {
    return JobEnd{true, "CompletionsReached", "Reached expected number of succeeded pods"};
  }
  if (const auto met = match_success_policy(context.spec, status.completed)) {
    return JobEnd{true, to_string(Reason::kSuccessPolicy), *met};
  }
  return judge_time(context, ends, status);
}

}  // namespace holdfast::reconciler
