// Times and durations in untrusted JSON. They are bounded, so that a few can be added and
// subtracted within 64 bits of nanoseconds (the years 1678 to 2262).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/json_view.h"
#include "core/time.h"

namespace holdfast {

// The member as parse_time() reads it. No value: absent, or not a time.
std::optional<Time> time_at(const JsonView& object, std::string_view key);

// The member in whole seconds, cut to +-68 years (31 bits of seconds, the most that our schema
// allows). No value: absent, or not a whole number.
std::optional<std::chrono::seconds> seconds_at(const JsonView& object, std::string_view key);

}  // namespace holdfast
