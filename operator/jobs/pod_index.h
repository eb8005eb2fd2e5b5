// How the cache of pods is indexed: by their job, and by their node. Pure.
#pragma once

#include <string>

#include "client/cache/store.h"
#include "operator/codecs/pod_codec.h"

namespace holdfast::jobs {

using kube::namespace_of;

// By the job's key. Ended pods that we have released need no decision: they have the value of
// settled(key).
inline constexpr const char* kByJob = "job";
inline std::string settled(const std::string& key) { return key + "/settled"; }
// By the node's name, until the pod ends.
inline constexpr const char* kByNode = "node";

// Empty: the pod names no job.
inline std::string job_key(const codecs::CachedPod& pod) {
  return pod.job_name.empty() ? "" : pod.namespace_ + "/" + pod.job_name;
}
// The key to look at because of the pod: its job's. If the pod names no job and has our finalizer,
// it is "<namespace>/", a job without a name. No attempt's pod is like that: its own name names the
// job.
inline std::string look_key(const codecs::CachedPod& pod) {
  const bool is_nobodys = pod.job_name.empty() && pod.pod.has_finalizer;
  return is_nobodys ? pod.namespace_ + "/" : job_key(pod);
}
void add_pod_indexes(cache::Store& pods);

}  // namespace holdfast::jobs
