// Which pods are the job's, and which one is its current attempt's. Whoever may create and patch
// pods can forge a name, labels and an owner, and can take them off; a UID is the API server's.
// Internal to reconciler/, but for current_pod() in decide.h.
#pragma once

#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The UID of the current attempt's pod: on record in the status, known to this process, or named by
// the Lease that was granted for the attempt. Empty: nobody has written it down yet.
std::string known_pod_uid(const JobView& view);

// The same, or the UID of the proven pod in the view: what goes on record.
std::string proven_pod_uid(const JobView& view);

// The job owns the pod, or it was an attempt's although its owner was taken off: it is the
// operator's to stop and to release.
bool is_ours(const JobView& view, const PodView& pod);

// The operator made this pod, as far as anybody can tell: what it reports may end the attempt. It
// has the known UID. Until that is known, it is owned by the job, which only the operator may say
// (docs/security.md), and bears the mark of the attempt's intent.
bool is_proven(const JobView& view, const PodView& pod);

}  // namespace holdfast::reconciler
