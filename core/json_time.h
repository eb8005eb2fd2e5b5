// Times and durations in JSON that others wrote. Bounded: a few of them can be added and subtracted
// without leaving what 64 bits of nanoseconds can tell (1678 to 2262), whatever stands there.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/json_view.h"
#include "core/time.h"

namespace holdfast {

// The member as parse_time() reads it; no value: it is absent, or no time.
std::optional<Time> time_at(const JsonView& object, std::string_view key);

// The member in whole seconds, cut to 68 years (31 bits of seconds, the most that our schema
// allows) in either direction; no value: it is absent, or no whole number.
std::optional<std::chrono::seconds> seconds_at(const JsonView& object, std::string_view key);

}  // namespace holdfast
