// Times and durations as people read them beside a clock.
#pragma once

#include <string>

#include "core/time.h"

namespace holdfast::plugin {

// "1m30s": whole seconds, never negative.
std::string span_text(Duration duration);

// "14:03:20", or "Nov 25 14:03" if it is another day than `now`. In UTC.
std::string clock_text(Time time, Time now);

// "in 28s (14:03:20 UTC)", "12s ago (14:02:40 UTC)".
std::string moment_text(Time time, Time now);

}  // namespace holdfast::plugin
