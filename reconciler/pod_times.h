// When a pod was bound and when it started. Each clock is believed only within what is known
// without it. Internal to reconciler/.
#pragma once

#include <optional>

#include "reconciler/edges.h"

namespace holdfast::reconciler {

// When the current pod came to stand where it does with the schedulers (Placement): what its
// condition says, not before this process last saw it elsewhere nor after it first saw it there.
Time placed_since(const Context& context, const PodView& pod);

// When a container of the current pod first ran; none: none has. A slow kubelet's clock may tell a
// time before the pod was bound, or was last seen without a start: then it is that time. A fast one
// may tell a time that is still to come: then it is when this process first saw the pod run, or
// what is on record since then.
std::optional<Time> attempt_start(const Context& context, const PodView& pod);
// Puts it into the status in the place of the intent's time: from then on it stands.
void record_start(const Context& context, const PodView& pod, Status& status);

}  // namespace holdfast::reconciler
