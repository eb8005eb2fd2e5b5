// Which pods belong to the job, and which one to a run's last attempt. Users who may create and
// patch pods can forge a name, labels and an owner, and can remove them. Only the UID comes from
// the API server.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The UID of the last attempt's pod: from the status, from this process's memory, or from the Lease
// granted for the attempt. Empty: not recorded yet.
std::string known_pod_uid(const Run& run, const RunView& seen);

// The pod of the last attempt of the run at this position in status.runs. Null: it is not in the
// view.
const PodView* current_pod(const JobView& view, std::size_t position);

// The same for each run, in the time that one look at each pod takes.
std::vector<const PodView*> current_pods(const JobView& view);

// The UID to record for that run: the known one, or the one of the proven pod in the view.
std::string proven_pod_uid(const JobView& view, std::size_t position, const PodView* current);

// True if the job owns the pod, or if the pod was an attempt's and lost its owner. The operator
// must then stop and release it.
bool is_ours(const JobView& view, const PodView& pod);

// True if the operator surely made this current pod of the run; then its report may end the
// attempt. The pod has the known UID. While that is unknown, the job must own the pod, and the pod
// must have the mark of the attempt's intent. Only the operator may set such an owner
// (docs/security.md).
bool is_proven(const JobView& view, const Run& run, const RunView& seen, const PodView& pod);

// The pod of a job's last attempt, as far as the status knows it; an empty name: there was none.
struct LastPod {
  std::string name;
  std::string uid;
};
LastPod last_pod(const Status& status);

}  // namespace holdfast::reconciler
