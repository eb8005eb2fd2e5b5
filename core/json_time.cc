#include "core/json_time.h"

#include <algorithm>
#include <limits>

#include "core/json.h"

namespace holdfast {

std::optional<Time> time_of(const JsonView& value) {
  if (!value.is_string()) return std::nullopt;
  return parse_time(value.string_or(""));
}

std::optional<Time> time_at(const JsonView& object, std::string_view key) {
  return time_of(at(object, key));
}

std::optional<std::chrono::seconds> seconds_of(const JsonView& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (!value.is_number_integer()) return std::nullopt;
  return std::chrono::seconds(std::clamp(value.int_or(0), -kMost, kMost));
}

std::optional<std::chrono::seconds> seconds_at(const JsonView& object, std::string_view key) {
  return seconds_of(at(object, key));
}

void put_time(Json& object, const char* key, const std::optional<Time>& time) {
  if (!time) return;
  const bool whole = std::chrono::floor<std::chrono::seconds>(*time) == *time;
  object[key] = whole ? format_time(*time) : format_time_nanos(*time);
}

}  // namespace holdfast
