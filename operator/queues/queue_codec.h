// Converts JobQueues between JSON and the reconciler's types. Pure.
#pragma once

#include <optional>
#include <string>

#include "client/kube/object.h"
#include "reconciler/queue/queue.h"

namespace holdfast::controller {

inline constexpr const char* kQueuePlural = "jobqueues";

struct CachedQueue : kube::Object {
  reconciler::QueueSpec spec;
  reconciler::QueueStatus status;
  std::int64_t generation = 0;
  // shared_metadata() (job_codec.h). None: too long for the cache.
  std::optional<std::string> metadata;
};

// What the cache of queues watches.
kube::Kind queue_kind();

// Null if the JSON is not an object.
kube::ObjectPtr decode_queue(const JsonView& json);

Json encode_queue_status(const reconciler::QueueStatus& status);

// The body of a PUT on /status, with this resourceVersion.
std::string queue_status_body(const kube::Object& queue, std::uint64_t version,
                              const std::string& shared_metadata,
                              const reconciler::QueueStatus& status);

}  // namespace holdfast::controller
