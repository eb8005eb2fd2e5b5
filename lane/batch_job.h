// A batch/v1 Job that Holdfast runs (docs/lane.md): its parts, and what Holdfast has written down
// in it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"

namespace holdfast::lane {

inline constexpr const char* kBatchGroupPath = "/apis/batch/v1";
inline constexpr const char* kBatchPlural = "jobs";
// The value of spec.managedBy.
inline constexpr const char* kManager = "holdfast.dev/operator";

// Annotations of a Job. The first names its DurableJob. The second has the Job's own UID and, once
// it was seen, the DurableJob's: "<uid>/<uid>". A copy of the Job has another UID, so there both
// are ignored.
inline constexpr const char* kNameAnnotation = "holdfast.dev/durable-job";
inline constexpr const char* kUidsAnnotation = "holdfast.dev/durable-job-uids";

struct BatchJob {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  bool deleting = false;
  // What others write too: labels, annotations, finalizers and owner references.
  Json metadata = Json::object();
  Json spec = Json::object();
  Json status = Json::object();

  bool suspended() const { return bool_at(spec, "suspend"); }
  bool indexed() const { return string_at(spec, "completionMode") == "Indexed"; }
};

// Complete or Failed.
bool is_finished(const Json& status);

// Which DurableJob the Job has. It is written into the Job before the DurableJob is created, by
// compare-and-swap, so a Job never has two names.
struct Record {
  std::string name;
  std::string uid;  // empty: not seen yet
  bool operator==(const Record&) const = default;
};
// None: the Job has no record of its own, or its owner has put words there that are not names.
std::optional<Record> record_of(const BatchJob& job);
// Lower case, digits, "-" and ".", as names (RFC 1123) and UIDs are: safe in a selector or a shell.
bool is_object_name(std::string_view text);
// The Job's metadata with this record.
Json with_record(const BatchJob& job, const Record& record);

// Its DurableJob gets a queue. Then the namespace decides the shard of both, else the Job's UID:
// reconciler::shard_key().
bool has_queue(const Json& metadata);

// The name that the DurableJob gets: the Job's, if it can be the name of a DurableJob.
std::string first_name(const BatchJob& job);
// Its DurableJob has the Job's own name, whatever becomes of its spec.
bool keeps_its_name(const BatchJob& job);
// If another object has that name already.
std::string second_name(const BatchJob& job);

}  // namespace holdfast::lane
