// The Lease of a job with `heartbeat`: how it changes hands, and what it proves about its holder.
// The protocol is in docs/internals/heartbeat.md; tests/model/heartbeat.pml checks it.
// Internal to reconciler/, except holder_identity().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/run/liveness.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// "<pod name>/<pod UID>", the Lease's holderIdentity.
std::string holder_identity(const PodView& pod);

// The Lease names this pod, for its attempt.
bool holds_lease(const RunContext& context, const PodView& pod);

// True if the job has no heartbeat, or if its Lease was granted to this pod. If the Lease is gone
// or was created again, nobody knows the grant. Then the pod's UID must be known in another way.
bool may_have_held_lease(const RunContext& context, const PodView& pod);

// True if the worker in this pod has renewed within the Lease's duration.
bool heartbeat_is_fresh(const RunContext& context, const PodView& pod);

// True if the pod's worker can never act again. Either its kubelet has seen it terminate for good.
// Or the pod was deleted before it got a node, so it never gets one. A missing pod proves nothing:
// after a forced deletion its processes may run on.
bool worker_is_stopped(const PodView& pod);

// The worker's container has not run yet. Others of its pod may have.
bool worker_is_starting(const PodView& pod);

// True if a known worker should renew this Lease: the job runs the attempt that holds it, and
// nobody saw the holder's worker stop. Otherwise no renewal is due, and silence proves nothing
// about the path to other workers. The `pod` has the holder's name. Null: it does not exist.
bool is_worked_on(const LeaseView& lease, const Status& status, const PodView* pod);

void add_heartbeat_limits(const RunContext& context, const PodView& pod,
                          std::vector<Limit>& limits);

// What a started pod waits for because of the heartbeat; none: nothing.
std::optional<Waiting> describe_heartbeat(const RunContext& context, const PodView& pod,
                                          const std::vector<Limit>& limits);

// The next step of a Lease's hand-over: a write, or a look after some time.
struct LeaseStep {
  std::optional<WriteLease> write;
  std::optional<Duration> wake_after;
  bool is_over = false;  // of leave_lease(): nothing needs the Lease any more
};

// The step towards `next`, the run after the planned writes. First the Lease is taken from an older
// attempt, then it is granted to the current pod. The grant comes at once if the last holder is
// known to be stopped or never renewed. Otherwise it comes one Lease duration after the take.
LeaseStep hand_over_lease(const RunContext& context, const Run& next);

// The next step of a Lease that is over. If `completions` has changed, its run may run again: under
// another name of the Lease, or as a run that has not begun. So the Lease is taken from its last
// holder and stays for one duration more. Any other Lease is over at once. `next`: the status after
// the planned writes.
LeaseStep leave_lease(const Context& context, const LeaseOver& over, const Status& next);

// Throws BrokenInvariant if this write, a step towards `next`, gives the Lease to a wrong attempt
// or pod. The attempt's `pod` may be null. The step was decided on the Lease `before`.
void check_lease_write(const WriteLease& write, const Run& next, const PodView* pod,
                       const std::optional<LeaseView>& before);

}  // namespace holdfast::reconciler
