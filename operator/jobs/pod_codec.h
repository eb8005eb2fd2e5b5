// Pods as they are cached, and the pod that an attempt is made of. Pure.
#pragma once

#include <string>

#include "client/kube/object.h"
#include "operator/jobs/job_codec.h"
#include "reconciler/decide.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct CachedPod : kube::Object {
  reconciler::PodView pod;
  // Of the DurableJob that owns it, or that its own name is made of, or that its label says. Empty:
  // nothing says it.
  std::string job_name;
  // The UID of the job that it is of: the owner's, or the label's when it has no owner.
  const std::string& job_uid() const { return owner_uid.empty() ? pod.job_uid_label : owner_uid; }
  // Owner or label says so.
  bool names(const std::string& a_job_uid) const {
    return !a_job_uid.empty() && (owner_uid == a_job_uid || pod.job_uid_label == a_job_uid);
  }
};

kube::ObjectPtr decode_pod(const JsonView& json);

// The body of the POST of an attempt's pod: the template, our labels over its own, our owner
// reference and finalizer, and the HOLDFAST_ environment first in every container, so that the
// template's own variables can refer to it. With `heartbeat` also the agent, out of `agent_image`.
Result<std::string> pod_body(const reconciler::Job& job, const std::string& pod_template,
                             const reconciler::CreatePod& pod, const std::string& agent_image);

// The body of a PodTemplate with what that pod says: the API server checks it alike, and no webhook
// for pods is asked.
std::string bare_template_body(const std::string& pod_body);

}  // namespace holdfast::controller
