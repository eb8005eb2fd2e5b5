// A DurableJob between its JSON and the reconciler's types. Pure.
#pragma once

#include <memory>
#include <string>

#include "client/kube/object.h"
#include "reconciler/types.h"

namespace holdfast::controller {

// As it is cached: what the reconciler reads, and as JSON text the template and what a status write
// repeats of the metadata. A finished job has neither: it starts no more pods, and hardly ever gets
// another write.
struct CachedJob : kube::Object {
  reconciler::Job job;
  std::string pod_template;
  std::string shared_metadata;
};

// Null when it is no DurableJob that the schema could have let through.
kube::ObjectPtr decode_job(const JsonView& json);

reconciler::Spec decode_spec(const JsonView& spec);
reconciler::Status decode_status(const JsonView& status);
Json encode_status(const reconciler::Status& status);

// What others write beside us, as they left it: labels, annotations, finalizers and owner
// references, as one JSON object.
std::string shared_metadata(const JsonView& metadata);

// The body of a PUT on /status: it carries the UID and the resourceVersion that were read, so that
// it fails with 409 on any other object or version. A PUT without the shared metadata changes none
// of it, but takes it out of its managers' managedFields: what they remove later would then stay.
std::string status_update_body(const reconciler::Job& job, const std::string& shared_metadata,
                               const reconciler::Status& status);

}  // namespace holdfast::controller
