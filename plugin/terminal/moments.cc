#include "plugin/terminal/moments.h"

#include <algorithm>
#include <array>

namespace holdfast::plugin {

using std::chrono::seconds;

std::string span_text(Duration duration) {
  const auto whole = std::chrono::floor<seconds>(std::max(duration, Duration::zero()));
  return human_duration(whole);
}

std::string clock_text(Time time, Time now) {
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::string text = format_time(time);  // 2006-01-02T15:04:05Z
  const std::string today = format_time(now);
  if (text.compare(0, 10, today, 0, 10) == 0) return text.substr(11, 8);
  const auto month = static_cast<std::size_t>(std::stoi(text.substr(5, 2)) - 1);
  const std::string day = std::string(kMonths.at(month)) + " " + text.substr(8, 2);
  return (text.compare(0, 4, today, 0, 4) == 0 ? day : day + " " + text.substr(0, 4)) + " " +
         text.substr(11, 5);
}

std::string moment_text(Time time, Time now) {
  // A bound that is 27.6 s away is "in 28s", and what was 27.6 s ago was "27s ago".
  const bool is_now = time <= now && now - time < seconds(1);
  const std::string relative = is_now ? "just now"
                               : time > now
                                   ? "in " + span_text(std::chrono::ceil<seconds>(time - now))
                                   : span_text(now - time) + " ago";
  return relative + " (" + clock_text(time, now) + " UTC)";
}

}  // namespace holdfast::plugin
