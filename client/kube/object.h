// The common fields of all cached objects. Each kind derives from Object and is immutable once
// decoded, so readers share it without copies: `std::shared_ptr<const Object>`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json_view.h"
#include "core/result.h"

namespace holdfast::kube {

struct Object {
  virtual ~Object() = default;
  std::string name;
  std::string namespace_;  // empty: cluster-scoped
  std::string uid;
  std::uint64_t version = 0;  // metadata.resourceVersion; comparable within one API server
  std::string owner_uid;      // of the controller owner reference, else empty

  std::string key() const { return namespace_.empty() ? name : namespace_ + "/" + name; }
};
// Of a key; empty: it is cluster-scoped.
inline std::string namespace_of(const std::string& key) {
  const std::size_t slash = key.find('/');
  return key.substr(0, slash == std::string::npos ? 0 : slash);
}
using ObjectPtr = std::shared_ptr<const Object>;

// An object of a list or a cache whose kind's decoder makes T.
template <class T>
std::shared_ptr<const T> as(ObjectPtr object) {
  return std::static_pointer_cast<const T>(std::move(object));
}

// Fills the fields above from an object's JSON. False: no name, no uid or no numeric version.
bool decode_meta(const JsonView& json, Object& object);

// Decodes these fields only. Null where decode_meta() is false.
ObjectPtr decode_bare(const JsonView& json);

// Parses a resourceVersion. False: not a number.
bool parse_version(const std::string& text, std::uint64_t& version);

struct ProtobufMessage;

// One kind of object as the operator watches it.
struct Kind {
  std::string name;        // for logs and metrics, e.g. "pods"
  std::string group_path;  // "/api/v1" or "/apis/holdfast.dev/v1alpha1"
  std::string plural;      // "pods"
  bool namespaced = true;
  std::string label_selector;  // not encoded; empty: all
  std::string field_selector;
  bool metadata_only = false;  // ask for PartialObjectMetadata
  // What `decode` reads, for watches in protobuf (protobuf.h). Null: they are in JSON.
  const ProtobufMessage* protobuf = nullptr;
  // Null: the object is not usable; it is counted and left out.
  std::function<ObjectPtr(const JsonView&)> decode;
};

// "/apis/<group>/namespaces/<namespace>/<plural>", encoded. An empty namespace means all.
std::string collection_path(const std::string& group_path, const std::string& plural,
                            const std::string& namespace_);

// The same and "/<name>[/<subresource>]". No object has an empty name; then the path names no
// object either.
std::string object_path(const std::string& group_path, const std::string& plural,
                        const std::string& namespace_, const std::string& name,
                        const std::string& subresource = "");

struct ListPage {
  std::vector<ObjectPtr> items;
  std::uint64_t version = 0;
  std::string continue_token;
  int undecodable = 0;
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kError;
  ObjectPtr object;           // null for bookmarks, errors and undecodable objects
  std::uint64_t version = 0;  // of the object or bookmark
  bool initial_events_end = false;
  Error error;  // kError: 410 is kGone, 429 kThrottled, 5xx kTransient
};

// Null also if the kind's own decoder throws.
ObjectPtr decode_object(const Kind& kind, const JsonView& json);

// One event, as a line of JSON or a frame of protobuf. Pure, and never throws. Malformed text gives
// a kError event. Lists: list_reader.h.
WatchEvent decode_watch_line(const Kind& kind, std::string_view line);

}  // namespace holdfast::kube
