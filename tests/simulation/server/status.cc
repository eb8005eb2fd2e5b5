#include "tests/simulation/server/status.h"

#include <string_view>
#include <utility>

namespace holdfast::simulation {
namespace {

Json details_of(const Resource& resource, const std::string& name) {
  Json details = {{"kind", resource.plural}};
  if (!name.empty()) details["name"] = name;
  if (*resource.group != 0) details["group"] = resource.group;
  return details;
}

std::string qualified(const char* kind, const Resource& resource) {
  return *resource.group == 0 ? kind : std::string(kind) + "." + resource.group;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

// Not parse_json: counting depth would cost half of a simulated write.
Json parse_body(const std::string& text) { return Json::parse(text, nullptr, false); }

ApiAnswer object_answer(int status, const Json& object) {
  ApiAnswer answer;
  answer.status = status;
  answer.body = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  return answer;
}

Json failure_status(int code, const std::string& reason, const std::string& message, Json details) {
  Json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
                 {"status", "Failure"}, {"message", message}, {"reason", reason},
                 {"code", code}};
  if (reason.empty()) status.erase("reason");
  if (!details.is_null()) status["details"] = std::move(details);
  return status;
}

ApiAnswer failure(int code, const std::string& reason, const std::string& message, Json details) {
  return object_answer(code, failure_status(code, reason, message, std::move(details)));
}

ApiAnswer bad_request(const std::string& message) { return failure(400, "BadRequest", message); }

ApiAnswer not_found(const Resource& resource, const std::string& name) {
  return failure(404, "NotFound",
                 qualified(resource.plural, resource) + " " + quoted(name) + " not found",
                 details_of(resource, name));
}

ApiAnswer already_exists(const Resource& resource, const std::string& name) {
  return failure(409, "AlreadyExists",
                 qualified(resource.plural, resource) + " " + quoted(name) + " already exists",
                 details_of(resource, name));
}

ApiAnswer conflict(const Resource& resource, const std::string& name, const std::string& why,
                   const std::string& kind) {
  Json details = details_of(resource, name);
  if (!kind.empty()) details["kind"] = kind;
  return failure(409, "Conflict",
                 "Operation cannot be fulfilled on " + qualified(resource.plural, resource) + " " +
                     quoted(name) + ": " + why,
                 std::move(details));
}

ApiAnswer version_missing(const Resource& resource, const std::string& name) {
  Json details = details_of(resource, name);
  details["causes"] =
      Json::array({{{"reason", "FieldValueInvalid"},
                    {"message", "Invalid value: 0: must be specified for an update"},
                    {"field", "metadata.resourceVersion"}}});
  return failure(422, "Invalid",
                 qualified(resource.plural, resource) + " " + quoted(name) +
                     " is invalid: metadata.resourceVersion: must be specified for an update",
                 std::move(details));
}

ApiAnswer invalid(const Resource& resource, const std::string& name, const Causes& causes) {
  Json details = details_of(resource, name);
  details["kind"] = resource.kind;
  // Events are one thing in two groups, and speak as the older one.
  if (std::string_view(resource.plural) == "events") details.erase("group");
  details["causes"] = Json::array();
  std::string text;
  for (const Cause& cause : causes) {
    details["causes"].push_back(
        {{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
    if (!text.empty()) text += ", ";
    text += cause.field + ": " + cause.message;
  }
  if (causes.size() > 1) text = "[" + text + "]";
  return failure(422, "Invalid",
                 qualified(resource.kind, resource) + " " + quoted(name) + " is invalid: " + text,
                 std::move(details));
}

Json expired_status(const std::string& message) { return failure_status(410, "Expired", message); }

Json too_large_version_status(std::uint64_t asked, std::uint64_t current) {
  return failure_status(504, "Timeout",
                        "Timeout: Too large resource version: " + std::to_string(asked) +
                            ", current: " + std::to_string(current),
                        {{"causes", Json::array({{{"reason", "ResourceVersionTooLarge"},
                                                  {"message", "Too large resource version"}}})},
                         {"retryAfterSeconds", 1}});
}

}  // namespace holdfast::simulation
