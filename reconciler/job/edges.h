// Edges of the job's state machine. Each function changes the status to the next one, and nothing
// else makes its edge. active.cc, stages.cc and wait_to_open.cc make those between Pending, Running
// and Backoff. Internal to reconciler/.
#pragma once

#include <optional>

#include "reconciler/job/judge.h"
#include "reconciler/run/context.h"
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

// -> Cancelled, or on to the next Always stage. No pod of the job runs.
void finish_cancelled(const Context& context, WriteStatus& write);
// -> Suspended, Cancelling, Pending. No attempt runs after these.
void suspend(const Context& context, Status& status);
void start_cancelling(const Context& context, Status& status);
void resume(const Context& context, Status& status);

}  // namespace holdfast::reconciler
