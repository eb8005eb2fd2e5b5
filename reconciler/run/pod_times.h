// When a pod was bound and when it started. Reported times are clamped to the range that this
// process has seen itself. Internal to reconciler/.
#pragma once

#include <optional>

#include "reconciler/run/context.h"

namespace holdfast::reconciler {

// When the current pod got its current Placement. This is the time in its condition, but not before
// this process last saw another Placement, and not after it first saw this one.
Time placed_since(const RunContext& context, const PodView& pod);
// The same of any pod; `placed`: as its condition has it.
Time placed_since(Time created, std::optional<Time> placed, const PodSightings& seen, Time now);

// The run's recorded start; none: it has only the time of its intent.
std::optional<Time> recorded_start(const Run& run);
// A container of the current pod has run. A kubelet may take back what it said, so what this
// process has seen, or what is on record, counts too.
bool has_started(const RunContext& context, const PodView& pod);
// It has, and now its kubelet says that none has. It may say so for a moment only.
bool start_is_taken_back(const RunContext& context, const PodView& pod);

// When a container of the current pod first ran; none: none has. The time is the kubelet's, with
// two corrections. If its clock is slow, the start is not before the pod was bound or was last seen
// without a start. If its clock is fast, a future start becomes the moment when this process first
// saw the pod run, or the recorded start. These two also replace a time that the kubelet does not
// report.
std::optional<Time> attempt_start(const RunContext& context, const PodView& pod);
// Records the start in the run, in place of the intent's time. Later calls keep it.
void record_start(const RunContext& context, const PodView& pod, Run& run);

}  // namespace holdfast::reconciler
