// Converts DurableJobs between JSON and the reconciler's types. Pure.
#pragma once

#include <memory>
#include <string>

#include "client/kube/object.h"
#include "reconciler/types.h"

namespace holdfast::controller {

// The cached job: the fields that the reconciler reads, and two JSON texts. These are the template,
// and the metadata that a status write repeats. A finished job has neither text: it starts no pods,
// and is hardly ever written again.
struct CachedJob : kube::Object {
  reconciler::Job job;
  std::string pod_template;
  std::string shared_metadata;
};

// Null if the JSON is not a DurableJob that the schema accepts.
kube::ObjectPtr decode_job(const JsonView& json);

reconciler::Spec decode_spec(const JsonView& spec);
reconciler::Status decode_status(const JsonView& status);
Json encode_status(const reconciler::Status& status);

// The metadata that others write too, unchanged: labels, annotations, finalizers and owner
// references, as one JSON object.
std::string shared_metadata(const JsonView& metadata);

// The body of a PUT on /status. It has the UID and resourceVersion of the last read, so it fails
// with 409 on any other object or version. It repeats the shared metadata. Without that, the PUT
// would remove these fields from their managers' managedFields, and a manager's later removal would
// have no effect.
std::string status_update_body(const reconciler::Job& job, const std::string& shared_metadata,
                               const reconciler::Status& status);

}  // namespace holdfast::controller
