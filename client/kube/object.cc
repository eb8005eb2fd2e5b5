#include "client/kube/object.h"

#include <charconv>
#include <optional>

#include "client/kube/percent_encode.h"
#include "client/kube/protobuf.h"

namespace holdfast::kube {
namespace {

std::string encode_segment(const std::string& segment) {
  // A segment of only dots would be removed from the path before the request is sent.
  if (segment == ".") return "%2E";
  if (segment == "..") return "%2E%2E";
  return percent_encode(segment);
}

WatchEvent error_event(ErrorCode code, std::string message) {
  WatchEvent event;
  event.error = make_error(code, std::move(message));
  return event;
}

// The Status object of an ERROR event.
Error error_of_status(const JsonView& status) {
  Error error;
  error.http_status = static_cast<int>(int_at(status, "code"));
  error.reason = string_at(status, "reason");
  error.message = string_at(status, "message", "the server ended the watch with an error");
  const std::int64_t retry_after = int_at(at(status, "details"), "retryAfterSeconds");
  if (retry_after > 0 && retry_after < 86400) error.retry_after = std::chrono::seconds(retry_after);
  if (error.http_status == 410 || error.reason == "Gone" || error.reason == "Expired") {
    error.code = ErrorCode::kGone;
  } else if (error.http_status == 429) {
    error.code = ErrorCode::kThrottled;
  } else if (error.http_status >= 500 || error.http_status == 408) {
    error.code = ErrorCode::kTransient;
  } else {
    error.code = ErrorCode::kTerminal;
  }
  return error;
}

}  // namespace

bool parse_version(const std::string& text, std::uint64_t& version) {
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, version);
  return error == std::errc() && last == end;
}

ObjectPtr decode_object(const Kind& kind, const JsonView& json) {
  try {
    return kind.decode(json);
  } catch (const std::exception&) {  // the decoder met unexpected JSON: not usable
    return nullptr;
  }
}

bool decode_meta(const JsonView& json, Object& object) {
  const JsonView metadata = at(json, "metadata");
  object.name = string_at(metadata, "name");
  object.namespace_ = string_at(metadata, "namespace");
  object.uid = string_at(metadata, "uid");
  object.owner_uid.clear();
  for (const JsonView owner : at(metadata, "ownerReferences")) {
    if (bool_at(owner, "controller")) object.owner_uid = string_at(owner, "uid");
  }
  return parse_version(string_at(metadata, "resourceVersion"), object.version) &&
         !object.name.empty() && !object.uid.empty();
}

ObjectPtr decode_bare(const JsonView& json) {
  auto object = std::make_shared<Object>();
  if (!decode_meta(json, *object)) return nullptr;
  return object;
}

std::string collection_path(const std::string& group_path, const std::string& plural,
                            const std::string& namespace_) {
  std::string path = group_path;
  if (!namespace_.empty()) path += "/namespaces/" + encode_segment(namespace_);
  return path + "/" + plural;
}

std::string object_path(const std::string& group_path, const std::string& plural,
                        const std::string& namespace_, const std::string& name,
                        const std::string& subresource) {
  // No object has this name. An empty name must not turn the request into one for the collection.
  static constexpr const char* kNoName = "-";
  std::string path = collection_path(group_path, plural, namespace_);
  path += "/" + (name.empty() ? kNoName : encode_segment(name));
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

WatchEvent decode_watch_line(const Kind& kind, std::string_view line) {
  // A server that has no protobuf of this kind answers in JSON.
  std::optional<std::string> text;
  if (kind.protobuf && !line.starts_with('{')) {
    text = watch_event_as_json(line, *kind.protobuf);
    if (!text) return error_event(ErrorCode::kTransient, "a watch event is malformed protobuf");
    line = *text;
  }
  const Result<JsonDocument> parsed = JsonDocument::parse(line);
  if (!parsed.ok()) {
    return error_event(ErrorCode::kTransient, "a watch event is " + parsed.error().message);
  }
  const JsonView object = at(*parsed, "object");
  const std::string type = string_at(*parsed, "type");
  WatchEvent event;
  if (type == "ERROR") {
    event.error = error_of_status(object);
    return event;
  }
  if (type == "ADDED") {
    event.type = WatchEventType::kAdded;
  } else if (type == "MODIFIED") {
    event.type = WatchEventType::kModified;
  } else if (type == "DELETED") {
    event.type = WatchEventType::kDeleted;
  } else if (type == "BOOKMARK") {
    event.type = WatchEventType::kBookmark;
  } else {
    return error_event(ErrorCode::kTransient, "a watch event has an unknown type");
  }
  const JsonView metadata = at(object, "metadata");
  if (!parse_version(string_at(metadata, "resourceVersion"), event.version)) {
    return error_event(ErrorCode::kTransient, "a watch event has no resourceVersion");
  }
  if (event.type == WatchEventType::kBookmark) {
    event.initial_events_end =
        string_at(at(metadata, "annotations"), "k8s.io/initial-events-end") == "true";
    return event;
  }
  event.object = decode_object(kind, object);
  return event;
}

}  // namespace holdfast::kube
