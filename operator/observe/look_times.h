// Up to when silences count, on the clock of each watch.
//
// A verdict rests on live reads, and they may take half a minute. What is written after they were
// asked for, a watch that hangs may not show, and no read. So a view with live reads measures all
// silences up to the moment before the first of them.
#pragma once

#include <algorithm>
#include <optional>

#include "core/time.h"
#include "reconciler/staleness.h"

namespace holdfast::observe {

// The moment on each clock. By default: now.
struct LookTimes {
  std::optional<Time> wall;  // the API server's clock
  SteadyTime steady = SteadyTime::max();
  // In live time (reconciler::LiveClock).
  Duration nodes = Duration::max();
  Duration node_leases = Duration::max();
  // Of one namespace.
  Duration pods = Duration::max();
  Duration heartbeats = Duration::max();
};

inline reconciler::LiveTime until(Duration asked, reconciler::LiveTime time) {
  return {std::min(time.now, asked), time.epoch};
}

}  // namespace holdfast::observe
