#include "core/time.h"

#include <array>
#include <cstdio>

namespace holdfast {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads a text from the front. After the first mismatch it stays failed.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Exactly `digits` decimal digits.
  int number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) {
      if (!next_is_digit()) return fail();
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }
  void literal(std::string_view expected) {
    if (rest_.substr(0, expected.size()) != expected) {
      fail();
    } else {
      rest_.remove_prefix(expected.size());
    }
  }
  // The index of the word that comes now.
  template <std::size_t N>
  int word(const std::array<std::string_view, N>& words) {
    for (std::size_t i = 0; i < N; ++i) {
      if (rest_.substr(0, words[i].size()) != words[i]) continue;
      rest_.remove_prefix(words[i].size());
      return static_cast<int>(i);
    }
    return fail();
  }
  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool next_is_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  bool ended() const { return ok_ && rest_.empty(); }
  int fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"Mon", "Tue", "Wed", "Thu",
                                                       "Fri", "Sat", "Sun"};

struct Civil {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

// "15:04:05".
void read_clock(Reader& reader, Civil& civil) {
  civil.hour = reader.number(2);
  reader.literal(":");
  civil.minute = reader.number(2);
  reader.literal(":");
  civil.second = reader.number(2);
}

constexpr seconds kEarliest = std::chrono::floor<seconds>(kEarliestTime.time_since_epoch());
constexpr seconds kLatest = std::chrono::floor<seconds>(kLatestTime.time_since_epoch());

// No value: no such day or hour.
std::optional<Time> to_time(const Civil& civil, Duration fraction, seconds offset) {
  const std::chrono::year_month_day date{std::chrono::year(civil.year),
                                         std::chrono::month(static_cast<unsigned>(civil.month)),
                                         std::chrono::day(static_cast<unsigned>(civil.day))};
  if (!date.ok() || civil.hour > 23 || civil.minute > 59 || civil.second > 59) return std::nullopt;
  const seconds since_epoch = std::chrono::sys_days(date).time_since_epoch() + hours(civil.hour) +
                              minutes(civil.minute) + seconds(civil.second) - offset;
  if (since_epoch < kEarliest) return kEarliestTime;
  if (since_epoch >= kLatest) return kLatestTime;
  return Time(Duration(since_epoch) + fraction);
}

struct Broken {
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<Duration> clock;
};

Broken break_down(Time time) {
  const auto day = std::chrono::floor<days>(time);
  return {std::chrono::year_month_day(day), std::chrono::hh_mm_ss<Duration>(time - day)};
}

std::string format_seconds(const Broken& broken) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d",
                static_cast<int>(broken.date.year()), static_cast<unsigned>(broken.date.month()),
                static_cast<unsigned>(broken.date.day()),
                static_cast<int>(broken.clock.hours().count()),
                static_cast<int>(broken.clock.minutes().count()),
                static_cast<int>(broken.clock.seconds().count()));
  return text.data();
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  Reader reader(text);
  Civil civil;
  civil.year = reader.number(4);
  reader.literal("-");
  civil.month = reader.number(2);
  reader.literal("-");
  civil.day = reader.number(2);
  reader.literal("T");
  read_clock(reader, civil);
  Duration fraction{0};
  if (reader.skip('.')) {
    Duration unit{100'000'000};
    do {
      fraction += unit * reader.number(1);
      unit /= 10;
    } while (reader.next_is_digit() && unit.count() > 0);
  }
  seconds offset{0};
  const bool east = reader.skip('+');
  if (east || reader.skip('-')) {
    const int offset_hours = reader.number(2);
    reader.literal(":");
    const int offset_minutes = reader.number(2);
    if (offset_hours > 23 || offset_minutes > 59) return std::nullopt;
    offset = (hours(offset_hours) + minutes(offset_minutes)) * (east ? 1 : -1);
  } else {
    reader.literal("Z");
  }
  if (!reader.ended()) return std::nullopt;
  return to_time(civil, fraction, offset);
}

std::string format_time(Time time) { return format_seconds(break_down(time)) + "Z"; }

std::string format_time_nanos(Time time) {
  const Broken broken = break_down(time);
  std::array<char, 16> fraction;
  std::snprintf(fraction.data(), fraction.size(), ".%09dZ",
                static_cast<int>(broken.clock.subseconds().count()));
  return format_seconds(broken) + fraction.data();
}

std::string format_time_micros(Time time) {
  std::string text = format_time_nanos(time);
  return text.erase(text.size() - 4, 3);  // three of nine digits, before the Z
}

std::optional<Time> parse_http_date(std::string_view text) {
  Reader reader(text);
  Civil civil;
  reader.word(kWeekdays);
  reader.literal(", ");
  civil.day = reader.number(2);
  reader.literal(" ");
  civil.month = reader.word(kMonths) + 1;
  reader.literal(" ");
  civil.year = reader.number(4);
  reader.literal(" ");
  read_clock(reader, civil);
  reader.literal(" GMT");
  if (!reader.ended()) return std::nullopt;
  return to_time(civil, Duration{0}, seconds{0});
}

std::string human_duration(Duration duration) {
  if (duration == Duration::min()) duration += Duration(1);  // its negative does not exist
  const std::string sign = duration.count() < 0 ? "-" : "";
  const Duration size = duration.count() < 0 ? -duration : duration;
  if (size < seconds(1)) {
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(size).count();
    return millis == 0 ? "0s" : sign + std::to_string(millis) + "ms";
  }
  struct NamedUnit {
    const char* name;
    std::int64_t seconds;
  };
  constexpr std::array<NamedUnit, 4> kUnits = {{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}};
  std::int64_t rest = std::chrono::duration_cast<seconds>(size).count();
  std::string text = sign;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (rest < kUnits[i].seconds) continue;
    text += std::to_string(rest / kUnits[i].seconds) + kUnits[i].name;
    rest %= kUnits[i].seconds;
    if (i + 1 < kUnits.size() && rest / kUnits[i + 1].seconds > 0) {
      text += std::to_string(rest / kUnits[i + 1].seconds) + kUnits[i + 1].name;
    }
    break;
  }
  return text;
}

}  // namespace holdfast
