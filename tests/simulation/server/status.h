// What the API server answers: objects, and metav1.Status for what it refuses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/server/resources.h"

namespace holdfast::simulation {

// One of Status.details.causes.
struct Cause {
  std::string reason;  // "FieldValueRequired", "FieldValueInvalid", ...
  std::string field;
  std::string message;
};
using Causes = std::vector<Cause>;

// A body as clients send it. Discarded when it is no JSON.
Json parse_body(const std::string& text);

ApiAnswer object_answer(int status, const Json& object);

// metav1.Status of a failure, as it stands in an answer or in an ERROR event.
Json failure_status(int code, const std::string& reason, const std::string& message,
                    Json details = nullptr);
ApiAnswer failure(int code, const std::string& reason, const std::string& message,
                  Json details = nullptr);

ApiAnswer bad_request(const std::string& message);
ApiAnswer not_found(const Resource& resource, const std::string& name);
ApiAnswer already_exists(const Resource& resource, const std::string& name);
// `kind`: what details.kind says, when that is not the resource.
ApiAnswer conflict(const Resource& resource, const std::string& name, const std::string& why,
                   const std::string& kind = "");
// 422: an update must say which version it is of.
ApiAnswer version_missing(const Resource& resource, const std::string& name);
ApiAnswer invalid(const Resource& resource, const std::string& name, const Causes& causes);
// 410: the version is compacted, or older than the watch cache knows.
Json expired_status(const std::string& message);
// 504: the watch cache has not reached the version.
Json too_large_version_status(std::uint64_t asked, std::uint64_t current);

}  // namespace holdfast::simulation
