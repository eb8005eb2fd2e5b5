#include "client/kube/protobuf.h"

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "core/time.h"

namespace holdfast::kube {
namespace {

using Type = ProtobufField::Type;

// https://protobuf.dev/programming-guides/encoding/
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

struct Value {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::uint64_t integer = 0;
  std::string_view bytes;
};

// Reads a message's fields one by one.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : left_(bytes) {}
  bool is_malformed() const { return malformed_; }

  std::optional<Value> next() {
    if (left_.empty() || malformed_) return std::nullopt;
    const std::uint64_t tag = varint();
    Value value;
    value.number = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case kVarint:
        value.integer = varint();
        break;
      case kLengthDelimited:
        value.is_bytes = true;
        value.bytes = take(varint());
        break;
      case kFixed64:
        take(8);
        break;
      case kFixed32:
        take(4);
        break;
      default:
        malformed_ = true;
    }
    if (malformed_) return std::nullopt;
    return value;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    malformed_ = true;
    return 0;
  }

  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) {
      malformed_ = true;
      return {};
    }
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::string_view left_;
  bool malformed_ = false;
};

// The last value of this field; none: absent or malformed.
std::optional<Value> find(std::string_view message, std::uint32_t number) {
  Wire reader(message);
  std::optional<Value> found;
  while (const std::optional<Value> value = reader.next()) {
    if (value->number == number) found = value;
  }
  return reader.is_malformed() ? std::nullopt : found;
}

std::string_view bytes_at(std::string_view message, std::uint32_t number) {
  const std::optional<Value> value = find(message, number);
  return value ? value->bytes : std::string_view();
}

bool has_field(const ProtobufMessage& table, std::uint32_t number) {
  return std::any_of(table.fields.begin(), table.fields.end(),
                     [&](const ProtobufField& field) { return field.number == number; });
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  // False: malformed.
  bool message(std::string_view bytes, const ProtobufMessage& table) {
    std::vector<Value> values;
    Wire reader(bytes);
    // A tenant's pod may have a million fields that nobody reads.
    while (const std::optional<Value> value = reader.next()) {
      if (has_field(table, value->number)) values.push_back(*value);
    }
    if (reader.is_malformed()) return false;
    out_ += '{';
    bool first = true;
    for (const ProtobufField& one : table.fields) {
      if (!field(one, values, first)) return false;
    }
    out_ += '}';
    return true;
  }

  void text(std::string_view bytes) {
    const bool plain = std::all_of(bytes.begin(), bytes.end(), [](char c) {
      return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    });
    if (plain) {
      out_ += '"';
      out_ += bytes;
      out_ += '"';
    } else {
      out_ += Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }

 private:
  void key(const char* name, bool& first) {
    if (!std::exchange(first, false)) out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

  bool field(const ProtobufField& wanted, const std::vector<Value>& values, bool& first) {
    const bool is_number = wanted.type == Type::kInteger || wanted.type == Type::kBool;
    std::vector<const Value*> found;
    for (const Value& value : values) {
      if (value.number != wanted.number) continue;
      if (value.is_bytes == is_number) return false;
      found.push_back(&value);
    }
    if (found.empty()) return true;
    const Value& last = *found.back();
    switch (wanted.type) {
      case Type::kText:
        if (last.bytes.empty()) return true;
        key(wanted.name, first);
        text(last.bytes);
        return true;
      case Type::kInteger:
        key(wanted.name, first);
        out_ += std::to_string(static_cast<std::int64_t>(last.integer));
        return true;
      case Type::kBool:
        key(wanted.name, first);
        out_ += last.integer != 0 ? "true" : "false";
        return true;
      case Type::kTime:
        if (last.bytes.empty()) return true;  // the zero time
        key(wanted.name, first);
        return time(last.bytes);
      case Type::kMessage:
        key(wanted.name, first);
        return message(last.bytes, *wanted.message);
      case Type::kTexts:
      case Type::kMessages:
        key(wanted.name, first);
        return list(wanted, found);
      case Type::kTextMap:
        key(wanted.name, first);
        return map(found);
    }
    return false;
  }

  bool time(std::string_view bytes) {
    constexpr std::uint32_t kSeconds = 1;
    const auto seconds_of = [](Time limit) {
      return std::chrono::floor<std::chrono::seconds>(limit).time_since_epoch().count();
    };
    const std::optional<Value> value = find(bytes, kSeconds);
    if (!value || value->is_bytes) return false;
    const std::int64_t seconds =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(value->integer),
                                 seconds_of(kEarliestTime), seconds_of(kLatestTime));
    text(format_time(Time(std::chrono::seconds(seconds))));
    return true;
  }

  bool list(const ProtobufField& wanted, const std::vector<const Value*>& values) {
    out_ += '[';
    for (const Value* const value : values) {
      if (value != values.front()) out_ += ',';
      if (wanted.type == Type::kTexts) {
        text(value->bytes);
      } else if (!message(value->bytes, *wanted.message)) {
        return false;
      }
    }
    out_ += ']';
    return true;
  }

  bool map(const std::vector<const Value*>& entries) {
    constexpr std::uint32_t kKey = 1, kValue = 2;
    out_ += '{';
    for (const Value* const entry : entries) {
      if (entry != entries.front()) out_ += ',';
      text(bytes_at(entry->bytes, kKey));
      out_ += ':';
      text(bytes_at(entry->bytes, kValue));
    }
    out_ += '}';
    return true;
  }

  std::string& out_;
};

const ProtobufMessage kOwner{
    {{5, "apiVersion"}, {1, "kind"}, {3, "name"}, {4, "uid"}, {6, "controller", Type::kBool}}};
const ProtobufMessage kCause{{{3, "field"}}};
const ProtobufMessage kDetails{
    {{4, "causes", Type::kMessages, &kCause}, {5, "retryAfterSeconds", Type::kInteger}}};
// meta/v1's Status.
const ProtobufMessage kStatus{{{3, "message"},
                               {4, "reason"},
                               {5, "details", Type::kMessage, &kDetails},
                               {6, "code", Type::kInteger}}};

// What each object is wrapped in: a magic prefix, and then runtime.Unknown.
struct Unknown {
  std::string_view kind;
  std::string_view raw;
};

std::optional<Unknown> unknown(std::string_view bytes) {
  constexpr std::string_view kMagic("k8s\0", 4);
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  bytes.remove_prefix(kMagic.size());
  return Unknown{bytes_at(bytes_at(bytes, 1), 2), bytes_at(bytes, 2)};
}

}  // namespace

const ProtobufMessage kObjectMeta{{{1, "name"},
                                   {3, "namespace"},
                                   {5, "uid"},
                                   {6, "resourceVersion"},
                                   {8, "creationTimestamp", Type::kTime},
                                   {9, "deletionTimestamp", Type::kTime},
                                   {10, "deletionGracePeriodSeconds", Type::kInteger},
                                   {11, "labels", Type::kTextMap},
                                   {12, "annotations", Type::kTextMap},
                                   {13, "ownerReferences", Type::kMessages, &kOwner},
                                   {14, "finalizers", Type::kTexts}}};

std::optional<std::string> watch_event_as_json(std::string_view frame,
                                               const ProtobufMessage& object) {
  // WatchEvent has a type and a RawExtension with the object's bytes.
  const std::string_view type = bytes_at(frame, 1);
  const std::optional<Unknown> content = unknown(bytes_at(bytes_at(frame, 2), 1));
  if (type.empty() || !content) return std::nullopt;
  std::string json;
  json.reserve(2048);
  Writer writer(json);
  json += "{\"type\":";
  writer.text(type);
  json += ",\"object\":";
  const ProtobufMessage& table = content->kind == "Status" ? kStatus : object;
  if (!writer.message(content->raw, table)) return std::nullopt;
  json += '}';
  return json;
}

std::optional<std::string> status_as_json(std::string_view body) {
  const std::optional<Unknown> content = unknown(body);
  std::string json;
  if (!content || content->kind != "Status" || !Writer(json).message(content->raw, kStatus)) {
    return std::nullopt;
  }
  return json;
}

}  // namespace holdfast::kube
