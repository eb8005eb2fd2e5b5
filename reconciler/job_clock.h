// The clock of spec.activeDeadlineSeconds. It starts with the job's first intent, and stands still
// while the job is suspended or the gates of its pod hold it back. Internal to reconciler/.
//
// What it stood still for is in status.suspendedSeconds, but for the stretch that still lasts: the
// condition Suspended tells since when, or `waiting` with the reason PodGated does. Whoever ends
// the stretch counts it, in the same write, so no crash loses it and nobody counts it twice.
#pragma once

#include <optional>

#include "reconciler/edges.h"

namespace holdfast::reconciler {

// When the job's time is over, with `status` as it stands or is being made; none: never, or not as
// long as the clock stands still.
std::optional<Time> active_deadline(const Context& context, const Status& status);
std::optional<Time> active_deadline(const Context& context);

// Counts the time for which the pod was gated, if `next` ends that.
void count_gated_time(const Context& context, Status& next);

// Counts the suspension that ends now.
void count_suspension(const Context& context, Status& next);

}  // namespace holdfast::reconciler
