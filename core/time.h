// The two kinds of time, and their text forms.
//
// SteadyTime judges staleness and drives timers. Each host has its own; never compare them between
// hosts. Time is the API server's wall time, as in `status` and in object metadata. Both come from
// a Loop or a ServerClock, never directly from the system, so that a simulator can drive them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

using Duration = std::chrono::nanoseconds;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Times beyond these are read as these, because "never" is often written as the year 9999. Within
// them, sums of a few times and durations of up to 68 years never overflow.
inline constexpr Time kEarliestTime{};
inline constexpr Time kLatestTime{
    std::chrono::sys_days(std::chrono::year(2100) / 1 / 1).time_since_epoch()};

// RFC 3339, as in metav1.Time and metav1.MicroTime: up to nine fractional digits, any offset. No
// value: not such a time.
std::optional<Time> parse_time(std::string_view text);

// "2006-01-02T15:04:05Z"; the fraction is dropped.
std::string format_time(Time time);

// With nine fractional digits.
std::string format_time_nanos(Time time);

// With six fractional digits, as metav1.MicroTime requires.
std::string format_time_micros(Time time);

// RFC 9110 IMF-fixdate, e.g. "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<Time> parse_http_date(std::string_view text);

// "90s" -> "1m30s": short text, two units at most.
std::string human_duration(Duration duration);

inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace holdfast
