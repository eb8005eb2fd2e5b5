// Converts a job's heartbeat Lease between JSON and the fields that the reconciler uses. Pure.
//
//   holdfast-<job UID>   in the job's namespace, owned by the job
//     spec.holderIdentity     <pod name>/<pod UID>; absent: nobody
//     spec.leaseTransitions   the attempt
//     spec.renewTime          absent until the holder has renewed it
//     label holdfast.dev/shard  the job's shard, since it last changed hands
//     holdfast.dev/granted    the last holder that it was granted to
//     holdfast.dev/stage      of a job with stages: the stage that it is for
//     holdfast.dev/checkpoint the worker's, kept when the Lease changes hands within a stage
//     holdfast.dev/progress, progress-age, progress-message, deferrals, ended   the agent's
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/kube/object.h"
#include "core/time.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::codecs {

struct CachedHeartbeat : kube::Object {
  reconciler::LeaseView lease;
  std::string job_name;  // of the DurableJob that owns it
  std::string mark;      // the progress annotation
  std::string shard_label;
};
using HeartbeatPtr = std::shared_ptr<const CachedHeartbeat>;

// The name of the Lease of a run of this job.
std::string lease_name(const reconciler::Job& job, std::int64_t run);
// The same of LeaseOver::run. The job's Leases may have had other names when this one was made.
std::string name_of_lease_over(const reconciler::Job& job, std::int64_t run);
std::string lease_name(const reconciler::Job& job, const reconciler::WriteLease& write);
// The run in a Lease's name; none: it is not the Lease of a run of a job with many runs.
std::optional<std::int64_t> run_in_lease_name(const std::string& job_uid, const std::string& name);

// Null: not a Lease, or no DurableJob owns it.
HeartbeatPtr decode_heartbeat(const JsonView& json);

// The body of the PUT, or of the POST if write.uid is empty. It drops the reports of earlier
// holders, but for the checkpoint.
std::string heartbeat_body(const reconciler::Job& job, const reconciler::WriteLease& write,
                           Time now, const std::string& shard_label = "");

}  // namespace holdfast::codecs
