// The Lease of a job with `heartbeat`: how it changes hands, and what it proves of the worker that
// holds it. Internal to reconciler/, but for holder_identity(). The protocol is docs/fencing.md's,
// and is checked by tests/model/heartbeat.pml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/liveness.h"
#include "reconciler/phases.h"

namespace holdfast::reconciler {

// "<pod name>/<pod UID>", the Lease's holderIdentity.
std::string holder_identity(const PodView& pod);

// The Lease names this pod, for its attempt.
bool holds_lease(const Context& context, const PodView& pod);

// The job has no heartbeat, or its Lease was granted to this pod. Where nobody can say to whom it
// was (it is gone, or was made anew), the pod's UID must be known otherwise.
bool may_have_held_lease(const Context& context, const PodView& pod);

// The worker in this pod has proved its life within the Lease's duration.
bool heartbeat_is_fresh(const Context& context, const PodView& pod);

// The pod with this identity can do nothing any more: its worker has terminated for good, and its
// kubelet has seen it, or the pod was told to go before it was bound to a node and can never be.
// That it is gone proves nothing: a force-deleted one's processes run on.
bool worker_is_stopped(const PodView& pod);

// The worker's container has not run yet, though others of its pod may have.
bool worker_is_starting(const PodView& pod);

// A worker is known to stand behind this Lease: the job runs the attempt that holds it, and the
// holder's worker was not seen to be stopped. Else nobody owes a renewal, and silence says nothing
// about the path to the others. `pod`: of the holder's name; null: it is not there.
bool is_worked_on(const LeaseView& lease, const Status& status, const PodView* pod);

void add_heartbeat_limits(const Context& context, const PodView& pod, std::vector<Limit>& limits);

// What a pod that has started waits for on the heartbeat's account; none: nothing.
std::optional<Waiting> describe_heartbeat(const Context& context, const PodView& pod,
                                          const std::vector<Limit>& limits);

// The next step of the hand-over to the attempt in `next`, the status as it will stand: the Lease
// is taken from an older attempt, then granted to the current pod. It is granted at once if the
// last pod that was granted it is known to be stopped, or never renewed it, else a whole duration
// after it was taken.
void hand_over_lease(const Context& context, const Status& next, Plan& plan);

}  // namespace holdfast::reconciler
