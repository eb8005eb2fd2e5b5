#include "operator/core/json.h"

#include <array>
#include <string>

namespace holdfast {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr char kOther = 0, kMetadata = 1, kAnnotations = 2;
// As an API server writes them, who leaves no blanks.
constexpr std::string_view kManagedFields = "\"managedFields\":[{\"";

// Behind the closing quote of the string that opens at `at`; npos: there is none.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// The same for an array or an object and its bracket.
std::size_t end_of_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    ++at;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth == 0) return at;
  }
  return std::string_view::npos;
}

// About half of each object is managedFields, and to read them in order to drop them costs as much
// as all the rest. Empty: there are none. The key stays, its value becomes null.
std::string without_managed_fields(std::string_view text) {
  std::string kept;
  std::size_t done = 0;
  while (true) {
    const std::size_t key = text.find(kManagedFields, done);
    if (key == std::string_view::npos) break;
    const std::size_t value = key + kManagedFields.find('[');
    const std::size_t end = end_of_brackets(text, value);
    if (end == std::string_view::npos) break;
    if (kept.empty()) kept.reserve(text.size());
    kept.append(text, done, value - done).append("null");
    done = end;
  }
  if (done > 0) kept.append(text, done);
  return kept;
}

Result<Json> parse_filtered(std::string_view text) {
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

}  // namespace

Result<Json> parse_json(std::string_view text) {
  const std::string kept = without_managed_fields(text);
  return parse_filtered(kept.empty() ? text : kept);
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
