#include "core/json.h"

#include <string>
#include <utility>

namespace holdfast {

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxJsonDepth;
    return !too_deep;
  };
  Json value = Json::parse(text.begin(), text.end(), watch_depth, /*allow_exceptions=*/false);
  if (too_deep) return make_error(ErrorCode::kTerminal, "JSON is nested too deeply");
  if (value.is_discarded()) return make_error(ErrorCode::kTransient, "malformed JSON");
  return value;
}

std::string as_utf8(std::string text) {
  const std::string quoted =
      Json(std::move(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
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
