// The job that retries another one. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"

namespace holdfast::plugin {

// Annotations of the new job: the name and the UID of its source.
inline constexpr const char* kRetryOfAnnotation = "holdfast.dev/retry-of";
inline constexpr const char* kRetryOfUidAnnotation = "holdfast.dev/retry-of-uid";

// The source's spec without suspend and cancel, its labels, and the annotations above; no name yet.
// `failed_indexes`: only the indexes that failed. kInvalid says why this source cannot be retried.
Result<Json> retry_job(const Json& source, bool failed_indexes);

// "encode-retry-1", then "encode-retry-2": also of a source that is a retry itself. `number` counts
// from 1. At most 51 characters, so that an Indexed job has room for its pods' hostnames.
std::string retry_name(const std::string& source, int number);

// How often the job of this name has been retried: 2 for "encode-retry-2", 0 without such an end.
int retry_number(const std::string& name);

}  // namespace holdfast::plugin
