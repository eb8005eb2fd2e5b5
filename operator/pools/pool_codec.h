// Converts WorkerPools between JSON and the reconciler's types. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/kube/object.h"
#include "operator/codecs/known_fields.h"
#include "reconciler/pool/pool.h"

namespace holdfast::pools {

struct CachedPool : kube::Object {
  reconciler::PoolSpec spec;
  reconciler::PoolStatus status;
  std::int64_t generation = 0;
  bool deleting = false;
  // The first thing in the spec that is wrong, with its field. Empty: none. The schema refuses such
  // a spec, so it was stored before the schema, or the fields of `spec` are cut to its limits.
  std::string invalid;
  // Of all that a worker is made from: worker_hash().
  std::string hash;
  // spec.template as JSON text. None: too long for the cache (kMaxCachedTexts), read the pool live.
  std::optional<std::string> pod_template;
  // None: too long for the cache.
  std::optional<codecs::SharedTexts> texts;
};
using PoolPtr = std::shared_ptr<const CachedPool>;

// What the cache of pools watches.
kube::Kind pool_kind();

// Null if the JSON is not an object.
PoolPtr decode_pool(const JsonView& json);

// spec.template as JSON text, from which the hash is made.
std::string template_of(const JsonView& pool);

codecs::SharedTexts decode_pool_texts(const JsonView& pool);

Json encode_pool_status(const reconciler::PoolStatus& status);

// The body of a PUT on /status, with this resourceVersion.
std::string pool_status_body(const kube::Object& pool, std::uint64_t version,
                             const codecs::SharedTexts& texts,
                             const reconciler::PoolStatus& status);

}  // namespace holdfast::pools
