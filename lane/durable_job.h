// The DurableJob that runs a batch/v1 Job. Pure.
#pragma once

#include <string>

#include "lane/batch_job.h"
#include "lane/mapping.h"

namespace holdfast::lane {

// The spec of the DurableJob with this name, and what differs. With errors the spec means nothing.
struct Mapped : Differences {
  Json spec = Json::object();
};
Mapped map_job(const BatchJob& job, const std::string& name);

// The fields that may change while the Job lives, its template apart. The others are immutable in a
// Job, or come from annotations. The operator reads those once.
Json changeable(const Json& spec);

// "<hash of changeable()>-<hash of the template>", for reconciler::kBatchJobAnnotation.
struct Source {
  std::string fields;
  std::string pod_template;
  bool operator==(const Source&) const = default;
  std::string text() const { return fields + "-" + pod_template; }
};
Source source_of(const Json& spec);
Source parse_source(const std::string& text);
// One of the two hashes.
std::string hash_of(const Json& json);

// The body of a POST. `shard_label`: reconciler::shard_label() of the Job. `keeps_rights`: see View
// (lane/decide.h).
std::string creation_body(const BatchJob& job, const std::string& name, const Mapped& mapped,
                          const std::string& shard_label, bool keeps_rights);

// The body of a JSON Patch of the DurableJob with this version: a conflict, if it has another one.
// Null: the field is removed.
std::string patch_body(std::uint64_t version, const Source& source, const Json& fields);

}  // namespace holdfast::lane
