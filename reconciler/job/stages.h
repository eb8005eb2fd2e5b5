// The end of a stage, what it means for the job, and the move to the next stage. A job without
// stages is one whose only stage is the job. Internal to reconciler/.
//
// One write has a stage's end and the next stage's first intents. So there is no state between two
// stages: the current one is on record, and it is running, being stopped, or waiting to start.
//
// The job's outcome is decided once and stays: FailureTarget or SuccessCriteriaMet is true, or
// spec.cancel is true before either. Only Always stages run after that, and, after a success, those
// that may still improve the result.
#pragma once

#include <optional>
#include <string>

#include "reconciler/job/edges.h"

namespace holdfast::reconciler {

// Records the end of the current stage, and the job's outcome if that decides it. Does nothing if
// the stage has ended. Only of a job with stages.
void record_stage_end(const Context& context, const JobEnd& end, WriteStatus& write);

// The current stage's end, if it is on record: its pods are being stopped.
std::optional<JobEnd> recorded_stage_end(const Status& status);

// Moves on from a stage that has ended and whose pods have stopped. The next stage that must run
// starts, if it can, and those before it are Skipped. If none is left, the job is Succeeded, Failed
// or Cancelled.
void leave_stage(const Context& context, WriteStatus& write);

// "stage 'verify': ", before the words of a job with stages; else nothing.
std::string stage_prefix(const Status& status);
// Makes `waiting` name the current stage, and what is decided already.
void name_stage(const Job& job, Status& status);

}  // namespace holdfast::reconciler
