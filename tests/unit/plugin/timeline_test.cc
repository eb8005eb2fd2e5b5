#include "plugin/explain/timeline.h"

#include <gtest/gtest.h>

#include "plugin/terminal/cells.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

const Time kNow = *parse_time("2026-07-01T14:00:00Z");

TimelineRow ended(const char* label, int from, int to) {
  return {.label = label,
          .duration = "",
          .note = "",
          .start = kNow - seconds(from),
          .end = kNow - seconds(to),
          .waits = false,
          .marks = {}};
}

std::size_t column_of(const std::string& line, char letter) {
  return cells(line.substr(0, line.find(letter)));
}

TEST(PluginTimeline, AttemptsAreToScale) {
  const auto lines = draw_timeline({ended("1", 100, 50), ended("2", 50, 0)}, {kNow, 45, false});
  EXPECT_EQ(lines[0], "  1 |-------------------|");
  EXPECT_EQ(lines[1], "  2                     |------------------|");
}

TEST(PluginTimeline, ABoundStandsAtItsTime) {
  TimelineRow row = ended("1 open", 60, 0);
  row.end.reset();
  row.marks = {{'S', "start deadline", kNow + seconds(60)}};
  const auto lines = draw_timeline({row}, {kNow, 60, false});
  const std::size_t first = column_of(lines[0], '|');
  const std::size_t now = column_of(lines[0], '>');
  const std::size_t bound = column_of(lines[0], 'S');
  EXPECT_NEAR(static_cast<double>(bound - now), static_cast<double>(now - first), 1.0);
  EXPECT_EQ(lines.back(), "  S start deadline in 1m (14:01:00 UTC)");
}

TEST(PluginTimeline, AFarBoundDoesNotSqueezeThePast) {
  TimelineRow row = ended("2 open", 50, 0);
  row.end.reset();
  row.marks = {{'D', "active deadline", kNow + seconds(86400)}};
  const auto lines = draw_timeline({ended("0 Failed", 150, 100), ended("1 Failed", 100, 50), row},
                                   {kNow, 80, false});
  EXPECT_GT(column_of(lines[1], '|') - column_of(lines[0], '|'), 4U);
  EXPECT_NE(lines[2].find('}'), std::string::npos);
  EXPECT_NE(lines.back().find("beyond the right edge"), std::string::npos);
}

// With one attempt there is nothing to distinguish: then a far bound shows how far it is.
TEST(PluginTimeline, TheOnlyAttemptShowsItsBound) {
  TimelineRow row = ended("1 open", 1, 0);
  row.end.reset();
  row.marks = {{'S', "start deadline", kNow + seconds(600)}};
  const auto lines = draw_timeline({row}, {kNow, 60, false});
  EXPECT_NE(lines[0].find('S'), std::string::npos);
}

TEST(PluginTimeline, TwoBoundsOfOneColumnStandSideBySide) {
  TimelineRow row = ended("1 open", 1000, 0);
  row.end.reset();
  row.marks = {{'L', "lost", kNow + seconds(500)}, {'P', "progress", kNow + seconds(501)}};
  const auto lines = draw_timeline({row}, {kNow, 60, false});
  EXPECT_NE(lines[0].find("PL"), std::string::npos) << lines[0];
}

TEST(PluginTimeline, AnyTimesFit) {
  for (const int from : {0, 1, 1000, 1'000'000'000}) {
    for (const int ahead : {-1000, 0, 1, 1'000'000'000}) {
      TimelineRow row = ended("1 open", from, 0);
      row.end.reset();
      row.marks = {{'A', "a", kNow + seconds(ahead)}, {'B', "b", kNow + seconds(2)}};
      for (const std::size_t width : {10U, 40U, 80U}) {
        for (const std::string& line :
             draw_timeline({row, ended("2", 5, 7)}, {kNow, width, true})) {
          EXPECT_LE(cells(line), std::max<std::size_t>(width, 32U)) << line;
        }
      }
    }
  }
  EXPECT_TRUE(draw_timeline({}, {kNow, 80, true}).empty());
}

}  // namespace
}  // namespace holdfast::plugin
