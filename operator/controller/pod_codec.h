// Pods, nodes and Leases as they are cached, and the pod that an attempt is made of. Pure.
#pragma once

#include <string>

#include "operator/controller/job_codec.h"
#include "operator/kube/object.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct CachedPod : kube::Object {
  reconciler::PodView pod;
  std::string job_name;  // of the DurableJob that owns it, else of the label
  // The UID of the job that it is of: the owner's, or the label's when it has no owner.
  const std::string& job_uid() const { return owner_uid.empty() ? pod.job_uid_label : owner_uid; }
};

kube::ObjectPtr decode_pod(const JsonView& json);

// Only name and version are kept: that is all that staleness needs.
kube::ObjectPtr decode_bare(const JsonView& json);

// The body of the POST of an attempt's pod: the template, our labels over its own, our owner
// reference and finalizer, and the HOLDFAST_ environment first in every container, so that the
// template's own variables can refer to it. With `heartbeat` also the agent, out of `agent_image`.
Result<std::string> pod_body(const reconciler::Job& job, const std::string& pod_template,
                             const std::string& name, std::int64_t attempt,
                             const std::string& agent_image);

}  // namespace holdfast::controller
