// The heartbeat's Lease of a job between its JSON and what the reconciler reads of it. Pure.
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
#include "reconciler/decide.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct CachedHeartbeat : kube::Object {
  reconciler::LeaseView lease;
  std::string job_name;  // of the DurableJob that owns it
  std::string mark;      // of progress
};

// Null: no Lease, or one that no DurableJob owns.
kube::ObjectPtr decode_heartbeat(const JsonView& json);

// The body of the PUT, or of the POST where write.uid is empty. What a holder has said goes.
std::string heartbeat_body(const reconciler::Job& job, const reconciler::WriteLease& write,
                           Time now);

}  // namespace holdfast::controller
