#include "operator/core/json_time.h"

#include <algorithm>
#include <limits>

namespace holdfast {

std::optional<Time> time_at(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  if (!value.is_string()) return std::nullopt;
  return parse_time(value.get_ref<const std::string&>());
}

std::optional<std::chrono::seconds> seconds_at(const Json& object, std::string_view key) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Json& value = at(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  // Beyond 63 bits it is unsigned, and get() would make it negative.
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{kMost}) {
    return std::chrono::seconds(kMost);
  }
  return std::chrono::seconds(std::clamp(value.get<std::int64_t>(), -kMost, kMost));
}

}  // namespace holdfast
