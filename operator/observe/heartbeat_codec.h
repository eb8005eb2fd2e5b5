// Converts a job's heartbeat Lease between JSON and the fields that the reconciler uses. Pure.
//
//   holdfast-<job UID>   in the job's namespace, owned by the job
//     spec.holderIdentity     <pod name>/<pod UID>; absent: nobody
//     spec.leaseTransitions   the attempt
//     spec.renewTime          absent until the holder has renewed it
//     holdfast.dev/granted    the last holder that it was granted to
//     holdfast.dev/progress, progress-age, progress-message, ended   the agent's
#pragma once

#include <string>

#include "client/kube/object.h"
#include "core/time.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct CachedHeartbeat : kube::Object {
  reconciler::LeaseView lease;
  std::string job_name;  // of the DurableJob that owns it
  std::string mark;      // the progress annotation
};

// Null: not a Lease, or no DurableJob owns it.
kube::ObjectPtr decode_heartbeat(const JsonView& json);

// The body of the PUT, or of the POST if write.uid is empty. It drops the reports of earlier
// holders.
std::string heartbeat_body(const reconciler::Job& job, const reconciler::WriteLease& write,
                           Time now);

}  // namespace holdfast::controller
