// Jobs and pods at rest, packed for the cache (client/kube/packed.h). A cluster keeps very many of
// them, and little is left to decide about each. Pure.
//
// A finished job is packed with what decisions, its TTL, its queue, its pool and the delivery of
// its events need. The rest of its status is read live when the status is written again: see
// JobTexts::finished. A pod is packed, with everything, once it has ended and has no finalizer of
// ours: its end is on record.
#pragma once

#include <cstdint>

#include "client/kube/object.h"
#include "operator/codecs/job_codec.h"

namespace holdfast::codecs {

// decode_job() and decode_pod() for caches: the same object, packed if it is at rest.
kube::ObjectPtr decode_cached_job(const JsonView& json);
kube::ObjectPtr decode_cached_pod(const JsonView& json);

// The job as it is after a write that settles it, which the API server has answered with this
// version.
kube::ObjectPtr settled_job(const CachedJob& job, const reconciler::Status& status,
                            std::uint64_t version);

// What the caches of jobs and pods watch: of jobs those that are not settled.
inline constexpr const char* kUnsettled = "status.settled!=true";
kube::Kind job_kind();
kube::Kind pod_kind();

}  // namespace holdfast::codecs
