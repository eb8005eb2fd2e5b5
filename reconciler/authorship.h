// Which pods belong to the job, and which one to its current attempt. Users who may create and
// patch pods can forge a name, labels and an owner, and can remove them. Only the UID comes from
// the API server. Internal to reconciler/, except current_pod() in decide.h.
#pragma once

#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The UID of the current attempt's pod: from the status, from this process's memory, or from the
// Lease granted for the attempt. Empty: not recorded yet.
std::string known_pod_uid(const JobView& view);

// The same, or the UID of the proven pod in the view. This is the UID to record.
std::string proven_pod_uid(const JobView& view);

// True if the job owns the pod, or if the pod was an attempt's and lost its owner. The operator
// must then stop and release it.
bool is_ours(const JobView& view, const PodView& pod);

// True if the operator surely made this pod; then its report may end the attempt. The pod has the
// known UID. While that is unknown, the job must own it, which only the operator may set
// (docs/security.md), and it must have the mark of the attempt's intent.
bool is_proven(const JobView& view, const PodView& pod);

}  // namespace holdfast::reconciler
