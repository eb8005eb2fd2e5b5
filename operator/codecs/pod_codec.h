// Decodes pods for the cache. Pure.
#pragma once

#include <string>

#include "client/kube/object.h"
#include "operator/codecs/job_codec.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::codecs {

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

}  // namespace holdfast::codecs
