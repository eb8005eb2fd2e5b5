// What of a change of a batch/v1 Job goes into its DurableJob. Pure.
//
// A field that the DurableJob refuses keeps its old value there. All others go through, and a
// suspension or a resume always does. Once the Job's status has said so, settled() is recorded in
// the DurableJob. So no process has to remember that a change was refused.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lane/durable_job.h"
#include "reconciler/types.h"

namespace holdfast::lane {

// Of a message that may have words of the Job, in bytes.
inline constexpr std::size_t kMostText = 1024;

// A field of the spec, and why it is refused.
using Refusals = std::map<std::string, std::string>;

struct Change {
  Json fields = Json::object();  // all that may change; null: the field is removed
  Refusals refused;              // what needs no try
  Source wanted;
  bool sends_completions = false;
  // The record once the rest is in force and the refusals are reported.
  Source settled() const;
  std::int64_t completions = 1;
};

// None: it has to wait until the DurableJob is Suspended, or the DurableJob is over.
std::optional<Change> change_of(const BatchJob& job, const reconciler::Job& durable,
                                const Source& recorded);

// For the API server that refuses all fields together: one at a time. A suspension comes first. A
// resume comes last, because some fields change only before it.
std::vector<Json> one_by_one(const Json& fields);

// "parallelism: <why>; template: <why>", for people.
std::string text_of(const Refusals& refused);

}  // namespace holdfast::lane
