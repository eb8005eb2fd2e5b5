// The edges of the job's state machine. Each function changes the status to the next one, and
// nothing else makes its edge. Internal to reconciler/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/job/attempt_ends.h"
#include "reconciler/run/running.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// Drops the runs that spec.completions leaves out since it fell.
void forget_left_out_runs(const Spec& spec, Status& status);

// True if a pod of the job may still run.
bool any_pod_lives(const Context& context);

// The highest attempt that the status or a pod shows. The next one has a higher number.
std::int64_t last_attempt(const Context& context);

// Starts the run's next attempt: (any) -> Running. `run` is one of status.runs. Of all attempts up
// to status.attempt there may be pods. `worker`: its place; null: a pod of its own.
void start_attempt(const Context& context, Status& status, Run& run,
                   const PoolView::Worker* worker);

// Why the current stage ends now, after these attempts have ended. None: it goes on. Failure comes
// before success, and a success before the end of its time, however late it is read. A job without
// stages ends with it.
struct JobEnd {
  bool succeeds = false;
  std::string reason;
  std::string message;
  enum class Cause { kItsOwn, kJobDeadline, kCancel };
  Cause cause = Cause::kItsOwn;
};
std::optional<JobEnd> judge_job(const Context& context, const std::vector<AttemptsEnd>& ends,
                                const Status& status);

// The job's outcome, if FailureTarget or SuccessCriteriaMet has it.
std::optional<JobEnd> decided_end(const Status& status);
// The end that is on record, while pods are being stopped: in FailureTarget or SuccessCriteriaMet,
// or in the entry of the current stage.
std::optional<JobEnd> recorded_end(const Status& status);
// Records it, with an Event of a failure. No run of the stage opens from now on.
void record_end(const Context& context, const JobEnd& end, WriteStatus& write);
// -> Succeeded, Failed, or on to the next stage. No pod of the job runs.
void finish(const Context& context, const JobEnd& end, WriteStatus& write);
// -> Succeeded, with an Event, or Failed.
void end_as(const Context& context, const JobEnd& end, WriteStatus& write);
// -> Cancelled, with an Event.
void end_as_cancelled(const Context& context, WriteStatus& write);

// What a job in Backoff waits for until this run's next attempt.
Waiting next_attempt_waiting(const Context& context, const Status& status, const AttemptsEnd& end,
                             const Run& run);

// -> Cancelled, or on to the next Always stage. No pod of the job runs.
void finish_cancelled(const Context& context, WriteStatus& write);
Waiting suspended_waiting();
// -> Suspended, Cancelling, Pending. No attempt runs after these.
void suspend(const Context& context, Status& status);
void start_cancelling(const Context& context, Status& status);
void resume(const Context& context, Status& status);

// The budget that is overspent; none: neither.
std::optional<JobEnd> spent_budget(const Spec& spec, const Status& status);
// More runs have failed than spec.maxFailedIndexes allows.
bool has_too_many_failed(const Spec& spec, const Status& status);

// What a job in Backoff waits for because of podReplacementPolicy Failed.
Waiting old_pod_waiting(const Context& context);
Waiting creation_waiting(const Context& context, const OpenCreation& creation);

// The job's queue has not admitted it, or there is no such queue.
Waiting queue_waiting(const Context& context);

// The last attempts of the job's runs still run on workers, and the next ones wait for their end.
Waiting old_slot_waiting(const Context& context);

// The job's pool has no free slot, or there is no such pool.
Waiting worker_waiting(const Context& context, const Status& status);
// A run of the pool that needs a worker of its own.
Waiting empty_worker_waiting(const Context& context, const Status& status);

// The job may start its next attempt, but must wait for its turn to create the pod.
Waiting turn_waiting(const Context& context, const Status& status);

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now);
// Sets the condition to false if it is true.
void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now);

}  // namespace holdfast::reconciler
