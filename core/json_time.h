// Times and durations in JSON. The functions bound what they read. So code can add and subtract a
// few of them within 64 bits of nanoseconds (the years 1678 to 2262).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/json_fwd.h"
#include "core/json_view.h"
#include "core/time.h"

namespace holdfast {

// The value as parse_time() reads it. No value: null, or not a time.
std::optional<Time> time_of(const JsonView& value);
// The same of a member.
std::optional<Time> time_at(const JsonView& object, std::string_view key);

// The value in whole seconds, cut to +-68 years (31 bits of seconds, the most that our schema
// allows). No value: null, or not a whole number.
std::optional<std::chrono::seconds> seconds_of(const JsonView& value);
// The same of a member.
std::optional<std::chrono::seconds> seconds_at(const JsonView& object, std::string_view key);

// Sets the member, if there is a time: in whole seconds as metav1.Time has them; a fraction stays.
void put_time(Json& object, const char* key, const std::optional<Time>& time);

}  // namespace holdfast
