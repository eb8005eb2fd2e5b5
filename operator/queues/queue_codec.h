// Converts JobQueues between JSON and the reconciler's types. Pure.
#pragma once

#include <optional>
#include <string>

#include "client/kube/object.h"
#include "operator/codecs/known_fields.h"
#include "reconciler/queue/queue.h"

namespace holdfast::queues {

inline constexpr const char* kQueuePlural = "jobqueues";

struct CachedQueue : kube::Object {
  reconciler::QueueSpec spec;
  reconciler::QueueStatus status;
  std::int64_t generation = 0;
  // None: too long for the cache.
  std::optional<codecs::SharedTexts> texts;
};
using QueuePtr = std::shared_ptr<const CachedQueue>;

// What the cache of queues watches.
kube::Kind queue_kind();

// Null if the JSON is not an object.
QueuePtr decode_queue(const JsonView& json);

codecs::SharedTexts decode_queue_texts(const JsonView& json);

Json encode_queue_status(const reconciler::QueueStatus& status);

// The body of a PUT on /status, with this resourceVersion.
std::string queue_status_body(const kube::Object& queue, std::uint64_t version,
                              const codecs::SharedTexts& texts,
                              const reconciler::QueueStatus& status);

}  // namespace holdfast::queues
