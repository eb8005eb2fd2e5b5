// The clock of spec.activeDeadlineSeconds. It starts with the job's first intent. It stops while
// the job is suspended, waits in its queue, or its pod is gated. Internal to reconciler/.
//
// status.suspendedSeconds has the time of all ended stops. The start of the current stop is in the
// condition Suspended, or in `waiting` with the reason PodGated, Queued or QueueMissing. The write
// that ends a stop also counts it. So no crash loses it, and nobody counts it twice.
#pragma once

#include <optional>

#include "reconciler/run/context.h"

namespace holdfast::reconciler {

// When the time of the job or of its current stage is over, for the current or the planned
// `status`. None: never, or not while the clock is stopped.
std::optional<Time> active_deadline(const Context& context, const Status& status);
std::optional<Time> active_deadline(const Context& context);
// True if that is the whole job's time, and not only the stage's.
bool is_jobs_deadline(const Context& context);

// True if the whole job's time is over, whatever stage it is in: Always stages outlive it. Only of
// a job with stages.
bool job_is_out_of_time(const Context& context, const Status& status);

// The time in which the pod is or was gated, or the job queued, and that `status` of the view does
// not have yet.
seconds uncounted_gate(const Context& context);

// Every run that is open in `next` was open before, and waits for the gates of its pod.
bool is_gated(const Context& context, const Status& next);

// `next` waits for the same as `before`: its `since`, and the time that is not counted, go on.
bool goes_on_waiting(const Status& before, const Status& next);

// Counts the time in which the pod was gated or the job queued, if `next` ends it.
void count_gated_time(const Context& context, Status& next);

// Counts the suspension that ends now.
void count_suspension(const Context& context, Status& next);

}  // namespace holdfast::reconciler
