#include "core/time.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Time at(std::int64_t seconds, std::int64_t nanos = 0) {
  return Time(std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos));
}

TEST(ParseTime, ReadsRfc3339WithAnyFractionAndOffset) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00Z"), at(0));
  EXPECT_EQ(parse_time("2026-01-02T03:04:05Z"), at(1767323045));
  EXPECT_EQ(parse_time("2026-01-02T03:04:05.6Z"), at(1767323045, 600'000'000));
  EXPECT_EQ(parse_time("2026-01-02T03:04:05.123456Z"), at(1767323045, 123'456'000));
  EXPECT_EQ(parse_time("2026-01-02T03:04:05.123456789Z"), at(1767323045, 123'456'789));
  EXPECT_EQ(parse_time("2026-01-02T05:04:05+02:00"), at(1767323045));
  EXPECT_EQ(parse_time("2026-01-01T21:34:05-05:30"), at(1767323045));
  EXPECT_EQ(parse_time("2024-02-29T00:00:00Z"), at(1709164800));
}

TEST(ParseTime, ReadsWhatLiesFarAwayAsTheNearerEnd) {
  const Time latest = *parse_time("2100-01-01T00:00:00Z");
  EXPECT_EQ(parse_time("1969-12-31T23:59:59.5Z"), at(0));
  EXPECT_EQ(parse_time("0001-01-01T00:00:00Z"), at(0));
  EXPECT_EQ(parse_time("2099-12-31T23:59:59.999999999Z"), latest - 1ns);
  EXPECT_EQ(parse_time("2100-01-01T00:00:00.5Z"), latest);
  EXPECT_EQ(parse_time("9999-12-31T23:59:59Z"), latest);
  EXPECT_EQ(parse_time("2100-01-01T00:30:00+01:00"), latest - 30min);
  // Two durations of a schema fit on top, and what is left of the past below.
  const auto longest = std::chrono::seconds(2'147'483'647);
  EXPECT_GT(latest + longest + longest, latest + longest);
  EXPECT_LT(at(0) - latest - longest, Duration::zero());
}

TEST(ParseTime, RefusesWhatIsNoTime) {
  for (const char* const text : {"",
                                 "now",
                                 "2026-01-02",
                                 "2026-01-02T03:04:05",
                                 "2026-01-02 03:04:05Z",
                                 "2026-01-02t03:04:05z",
                                 "2026-13-02T03:04:05Z",
                                 "2026-02-29T03:04:05Z",
                                 "2026-01-02T24:00:00Z",
                                 "2026-01-02T03:60:05Z",
                                 "2026-01-02T03:04:60Z",
                                 "2026-01-02T03:04:05.Z",
                                 "2026-01-02T03:04:05.1234567890Z",
                                 "2026-01-02T03:04:05,5Z",
                                 "2026-01-02T03:04:05+0200",
                                 "2026-01-02T03:04:05+24:00",
                                 "2026-01-02T03:04:05+02:60",
                                 "2026-01-02T03:04:05ZZ",
                                 " 2026-01-02T03:04:05Z",
                                 "26-01-02T03:04:05Z",
                                 "+026-01-02T03:04:05Z"}) {
    EXPECT_FALSE(parse_time(text).has_value()) << text;
  }
}

TEST(FormatTime, IsWhatParseTimeReads) {
  EXPECT_EQ(format_time(at(1767323045, 999'999'999)), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_time_nanos(at(1767323045, 12)), "2026-01-02T03:04:05.000000012Z");
  EXPECT_EQ(format_time_micros(at(1767323045, 12'345)), "2026-01-02T03:04:05.000012Z");
  EXPECT_EQ(format_time(at(-1, 500'000'000)), "1969-12-31T23:59:59Z") << "cut, not rounded";
  for (const std::int64_t seconds : {0, 951782400, 1767323045}) {
    EXPECT_EQ(parse_time(format_time_nanos(at(seconds, 987'654'321))), at(seconds, 987'654'321));
  }
}

TEST(ParseHttpDate, ReadsImfFixdateAlone) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), parse_time("1994-11-06T08:49:37Z"));
  for (const char* const text :
       {"", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Foo, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_http_date(text).has_value()) << text;
  }
}

TEST(HumanDuration, HasTwoUnitsAtMost) {
  EXPECT_EQ(human_duration(0s), "0s");
  EXPECT_EQ(human_duration(250ms), "250ms");
  EXPECT_EQ(human_duration(1500ms), "1s");
  EXPECT_EQ(human_duration(90s), "1m30s");
  EXPECT_EQ(human_duration(60s), "1m");
  EXPECT_EQ(human_duration(3h + 5s), "3h");
  EXPECT_EQ(human_duration(26h + 3min), "1d2h");
  EXPECT_EQ(human_duration(-90s), "-1m30s");
  EXPECT_EQ(human_duration(Duration::min()).substr(0, 1), "-");
}

}  // namespace
}  // namespace holdfast
