// The API server's answers: objects, and metav1.Status for refusals.
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

// As the API server says it.
inline void refuse(Causes& causes, const std::string& field, const std::string& why) {
  causes.push_back({"FieldValueInvalid", field, "Invalid value: " + why});
}
inline void forbid(Causes& causes, const std::string& field, const std::string& why) {
  causes.push_back({"FieldValueForbidden", field, "Forbidden: " + why});
}
inline void require(Causes& causes, const std::string& field, const std::string& why) {
  causes.push_back({"FieldValueRequired", field, "Required value: " + why});
}

// Parses a client's body. Discarded if it is not JSON.
Json parse_body(const std::string& text);

ApiAnswer object_answer(int status, const Json& object);

// The metav1.Status of a failure, in an answer or an ERROR event.
Json failure_status(int code, const std::string& reason, const std::string& message,
                    Json details = nullptr);
ApiAnswer failure(int code, const std::string& reason, const std::string& message,
                  Json details = nullptr);

ApiAnswer bad_request(const std::string& message);
ApiAnswer not_found(const Resource& resource, const std::string& name);
ApiAnswer already_exists(const Resource& resource, const std::string& name);
// `kind`: details.kind, if that is not the resource.
ApiAnswer conflict(const Resource& resource, const std::string& name, const std::string& why,
                   const std::string& kind = "");
// 422: an update needs a version.
ApiAnswer version_missing(const Resource& resource, const std::string& name);
ApiAnswer invalid(const Resource& resource, const std::string& name, const Causes& causes);
// 410: the version is compacted, or older than the watch cache.
Json expired_status(const std::string& message);
// 504: the watch cache has not reached the version.
Json too_large_version_status(std::uint64_t asked, std::uint64_t current);

}  // namespace holdfast::simulation
