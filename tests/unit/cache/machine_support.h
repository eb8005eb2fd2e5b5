// Short forms of objects and machine outputs, for the tests of the cache.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/cache/reflector_machine.h"

namespace holdfast::cache::test {

inline ObjectPtr object(const std::string& name, std::uint64_t version, std::string uid = "",
                        std::string namespace_ = "ns") {
  auto made = std::make_shared<kube::Object>();
  made->name = name;
  made->namespace_ = std::move(namespace_);
  made->uid = uid.empty() ? "uid-" + name : std::move(uid);
  made->version = version;
  return made;
}

inline kube::WatchEvent event(kube::WatchEventType type, ObjectPtr object) {
  kube::WatchEvent made;
  made.type = type;
  made.version = object->version;
  made.object = std::move(object);
  return made;
}
inline kube::WatchEvent added(ObjectPtr object) {
  return event(kube::WatchEventType::kAdded, std::move(object));
}
inline kube::WatchEvent modified(ObjectPtr object) {
  return event(kube::WatchEventType::kModified, std::move(object));
}
inline kube::WatchEvent deleted(ObjectPtr object) {
  return event(kube::WatchEventType::kDeleted, std::move(object));
}
inline kube::WatchEvent bookmark(std::uint64_t version, bool end = false) {
  kube::WatchEvent made;
  made.type = kube::WatchEventType::kBookmark;
  made.version = version;
  made.initial_events_end = end;
  return made;
}
inline kube::WatchEvent error_event(ErrorCode code, int status) {
  kube::WatchEvent made;
  made.error = make_error(code, "the server says so");
  made.error.http_status = status;
  return made;
}

inline kube::ListPage page(std::uint64_t version, std::vector<ObjectPtr> items = {},
                           std::string continue_token = "") {
  return {std::move(items), version, std::move(continue_token), 0};
}

inline Error connection_refused() { return make_error(ErrorCode::kTransient, "refused"); }
inline Error http_error(ErrorCode code, int status, std::string message = "no") {
  Error error = make_error(code, std::move(message));
  error.http_status = status;
  return error;
}
inline Error gone() { return http_error(ErrorCode::kGone, 410, "too old resource version"); }
inline Error too_large() {
  return http_error(ErrorCode::kTransient, 504,
                    "Timeout: Too large resource version: 9, current: 5");
}

// The only action of this type, if any.
template <class T>
std::optional<T> only(const Actions& actions) {
  std::optional<T> found;
  for (const Action& action : actions) {
    if (const T* match = std::get_if<T>(&action)) found = *match;
  }
  return found;
}

inline std::vector<std::string> names(const std::vector<ObjectPtr>& objects) {
  std::vector<std::string> out;
  for (const ObjectPtr& item : objects) out.push_back(item->name);
  return out;
}

}  // namespace holdfast::cache::test
