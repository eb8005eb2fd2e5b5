// The job that retries another one. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"

namespace holdfast::plugin {

// Annotations of the new job: the name and the UID of its source.
inline constexpr const char* kRetryOfAnnotation = "holdfast.dev/retry-of";
inline constexpr const char* kRetryOfUidAnnotation = "holdfast.dev/retry-of-uid";

// The source's spec without suspend and cancel, its labels, and the annotations above. It has no
// name yet. `failed_indexes`: only the indexes that failed. kInvalid says why this source cannot be
// retried.
Result<Json> retry_job(const Json& source, bool failed_indexes);

// "encode-retry-1-2hw9r", and for the source of that name "encode-retry-2-" and other characters:
// they are made from the source's UID. So a new job of an old name has another retry. At most 51
// characters, so that an Indexed job has room for its pods' hostnames.
std::string retry_name(const std::string& source, const std::string& source_uid);

}  // namespace holdfast::plugin
