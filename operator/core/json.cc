#include "operator/core/json.h"

#include <array>

namespace holdfast {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr char kOther = 0, kMetadata = 1, kAnnotations = 2;

}  // namespace

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  // What the key that is being read stands in: the last key that was met at each depth. A label
  // that happens to be called managedFields stays.
  std::array<char, kMaxJsonDepth + 1> parent{};
  const auto filter = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth >= kMaxJsonDepth) {
      too_deep = true;
      return false;
    }
    if (event != Json::parse_event_t::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    const char in = depth > 0 ? parent[depth - 1] : kOther;
    parent[depth] = key == "metadata" ? kMetadata : key == "annotations" ? kAnnotations : kOther;
    if (in == kMetadata) return key != "managedFields";
    return in != kAnnotations || key != kLastApplied;
  };
  Json value = Json::parse(text.begin(), text.end(), filter, /*allow_exceptions=*/false);
  if (value.is_discarded()) return make_error(ErrorCode::kTransient, "malformed JSON");
  if (too_deep) return make_error(ErrorCode::kTerminal, "JSON is nested too deeply");
  return value;
}

const Json& at(const Json& object, std::string_view key) {
  static const Json* const null = new Json();  // never destroyed: usable until the process ends
  if (!object.is_object()) return *null;
  const auto found = object.find(key);
  return found == object.end() ? *null : *found;
}

std::string string_at(const Json& object, std::string_view key, std::string_view fallback) {
  const Json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : std::string(fallback);
}

std::int64_t int_at(const Json& object, std::string_view key, std::int64_t fallback) {
  const Json& value = at(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : fallback;
}

bool bool_at(const Json& object, std::string_view key, bool fallback) {
  const Json& value = at(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

}  // namespace holdfast
