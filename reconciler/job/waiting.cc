#include "reconciler/job/waiting.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/json_time.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/running.h"
#include "reconciler/run/slot.h"

namespace holdfast::reconciler {
namespace {

// Of a job with a pool.
Waiting old_slot_waiting(const Context& context) {
  return Waiting{
      Reason::kWorkerStopping, "the last attempt is being stopped on " + workers_left(context),
      "the next attempt starts when nothing of it runs there any more, or when the worker is cut off",
      active_deadline(context)};
}

}  // namespace

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

Waiting open_runs_waiting(const Context& context, Reason reason, std::string message) {
  const std::string ends = context.spec.pool ? "command" : "pod";
  return Waiting{reason, std::move(message),
                 "each run ends with its " + ends + ", and the next one opens",
                 active_deadline(context)};
}

Waiting begun_waiting(const Context& context) {
  return context.spec.pool ? open_runs_waiting(context, Reason::kWorkerStarting,
                                               "workers were told of the open runs")
                           : open_runs_waiting(context, Reason::kPodStarting,
                                               "the pods of the open runs are being started");
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

Waiting queue_waiting(const Context& context) {
  const std::string& queue = context.job.queue->name;
  if (context.view.observed.permit.no_queue) {
    return Waiting{
        Reason::kQueueMissing, "there is no JobQueue " + queue + " in the job's namespace",
        "create the JobQueue, or make the job again with a queue that exists", std::nullopt};
  }
  return Waiting{Reason::kQueued, "the job waits in the JobQueue " + queue,
                 "it starts when the queue gives it a permit; kubectl get jobqueue " + queue +
                     " -n " + context.job.namespace_ + " -o wide says why none is free",
                 std::nullopt};
}

Waiting suspended_waiting() {
  return Waiting{Reason::kSuspended, "spec.suspend is true; no pod runs",
                 "set spec.suspend to false to go on", std::nullopt};
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

Waiting backoff_waiting(const Context& context, Time due) {
  return Waiting{Reason::kRetryBackoff, "no run may open before its back-off is over",
                 "the first of them starts its next attempt",
                 context.deadline ? std::min(*context.deadline, due) : due};
}

Waiting paused_waiting(const Context& context) {
  return Waiting{Reason::kPaused, "spec.parallelism is 0: no run opens",
                 "set spec.parallelism to 1 or more to go on", active_deadline(context)};
}

Waiting unseen_waiting() {
  return Waiting{Reason::kOperatorAwaited, "the operator has not looked at the job yet",
                 "the operator starts the job; if it does not, check that Holdfast runs and "
                 "watches the namespace",
                 std::nullopt};
}

Waiting stopping_waiting(const Context& context, const JobEnd& reached) {
  if (!context.job.stages.empty()) {
    return Waiting{Reason::kRunsStopped,
                   "the stage ends (" + reached.reason + "): its pods are being stopped",
                   "the job goes on when they have ended, or at waiting.deadline", std::nullopt};
  }
  return Waiting{Reason::kRunsStopped,
                 "the job ends (" + reached.reason + "): its pods are being stopped",
                 std::string("the job is ") + (reached.succeeds ? "Succeeded" : "Failed") +
                     " when they have ended, or at waiting.deadline",
                 std::nullopt};
}

}  // namespace holdfast::reconciler
