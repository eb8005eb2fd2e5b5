// Kubernetes' protobuf encoding, read as JSON. The API server encodes an event once for all its
// protobuf watches, but once more for those that ask for JSON. Its own clients use protobuf.
//
// A table names the fields that a decoder reads. All others are skipped, so the JSON is short.
// Pure: constants and values. Field numbers never change:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::kube {

struct ProtobufMessage;

struct ProtobufField {
  enum class Type {
    kText,
    kInteger,
    kBool,
    kTime,     // meta/v1's Time, as RFC 3339 with whole seconds, within core/time.h's limits
    kTexts,    // a list
    kTextMap,  // from text to text
    kMessage,
    kMessages,  // a list
  };
  std::uint32_t number = 0;  // in generated.proto
  const char* name = "";     // in JSON
  Type type = Type::kText;
  const ProtobufMessage* message = nullptr;
};

struct ProtobufMessage {
  std::vector<ProtobufField> fields;
};

// metadata: what decode_meta() and Holdfast's kinds read of it.
extern const ProtobufMessage kObjectMeta;

inline constexpr const char* kProtobufType = "application/vnd.kubernetes.protobuf";

// One event of a watch, {"type": ..., "object": ...}. `object`: the watched kind. Empty texts and
// absent messages are left out, as in the API server's JSON. Bytes that are not UTF-8 are replaced.
// None: malformed.
std::optional<std::string> watch_event_as_json(std::string_view frame,
                                               const ProtobufMessage& object);

// meta/v1's Status, as the API server answers a refused request for protobuf. None: `body` is no
// protobuf, or malformed.
std::optional<std::string> status_as_json(std::string_view body);

}  // namespace holdfast::kube
