// Draws attempts and bounds with characters, to scale, on one common axis of time. Pure.
//
//     2 Failed    |-----|                             1m2s   Error, exit 1, node-2
//     3 running            |------>......S            1m10s  node-2
//                 13:40:00        now    14:03:20
//     S start deadline in 40s (14:03:20 UTC)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::plugin {

// A bound: something happens then, if nothing happens before.
struct TimelineMark {
  char letter = '?';
  std::string name;  // "start deadline"
  Time at{};
};

struct TimelineRow {
  std::string label;
  std::string duration;  // of the attempt so far
  std::string note;
  Time start{};
  std::optional<Time> end;          // none: it lasts
  bool waits = false;               // nothing runs: a wait from `start` on
  std::vector<TimelineMark> marks;  // of a row that lasts or waits
};

struct TimelineLook {
  Time now{};
  std::size_t width = 80;
  bool unicode = true;
};

// The rows, the axis, and a legend of the marks. No rows: no lines. Marks that are so far away that
// the attempts could not be distinguished stand at the right edge, and the legend says so.
std::vector<std::string> draw_timeline(const std::vector<TimelineRow>& rows,
                                       const TimelineLook& look);

}  // namespace holdfast::plugin
