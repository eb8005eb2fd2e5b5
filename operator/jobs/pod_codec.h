// Decodes pods for the cache, and builds an attempt's pod. Pure.
#pragma once

#include <string>

#include "client/kube/object.h"
#include "operator/jobs/job_codec.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct CachedPod : kube::Object {
  reconciler::PodView pod;
  // The DurableJob's name: from the owner, from the pod's own name, or from the label. Empty: none
  // of them names a job.
  std::string job_name;
  // The UID of the pod's job: from the owner, or from the label if it has no owner.
  const std::string& job_uid() const { return owner_uid.empty() ? pod.job_uid_label : owner_uid; }
  // True if the owner or the label names this job.
  bool names(const std::string& a_job_uid) const {
    return !a_job_uid.empty() && (owner_uid == a_job_uid || pod.job_uid_label == a_job_uid);
  }
};
using PodPtr = std::shared_ptr<const CachedPod>;

PodPtr decode_pod(const JsonView& json);

// Its end is on record, or somebody else removed our finalizer.
inline bool is_settled(const reconciler::PodView& pod) { return pod.ended() && !pod.has_finalizer; }

// The body of the POST of an attempt's pod. It is the template with our labels, owner reference and
// finalizer. Every container starts its environment with the HOLDFAST_ variables, so that the
// template's own variables can refer to them. With `heartbeat` it also has the agent from
// `agent_image`. `shard_label`: reconciler::shard_label().
Result<std::string> pod_body(const reconciler::Job& job, const std::string& pod_template,
                             const reconciler::CreatePod& pod, const std::string& agent_image,
                             const std::string& shard_label);

// The labels or annotations of a template, but for those under holdfast.dev/.
Json without_our_keys(const Json& map);
// The finalizers of a template, as batch/v1 puts them on pods, but for those under holdfast.dev/.
Json finalizers_of(const Json& template_metadata);

// The body of a PodTemplate with that pod's content. The API server checks it like a pod, but calls
// no webhooks for pods.
std::string bare_template_body(const std::string& pod_body);

}  // namespace holdfast::controller
