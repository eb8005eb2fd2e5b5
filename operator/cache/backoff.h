// How long a reflector waits after trouble: 0.8 s to 30 s, doubling, jittered upwards so that a
// crowd of them does not come back together, reset after two good minutes.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "operator/core/random.h"
#include "operator/core/time.h"

namespace holdfast::cache {

class Backoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(800);
  // With the largest jitter of half as much again this makes 30 s.
  static constexpr Duration kLast = std::chrono::seconds(20);
  static constexpr Duration kGoodFor = std::chrono::minutes(2);

  // Things go well from here on, until the next trouble.
  void good(SteadyTime now) {
    if (!good_since_) good_since_ = now;
  }

  // Trouble: how long to wait.
  Duration next(SteadyTime now, Random& random) {
    forgive(now);
    good_since_.reset();
    const Duration delay = next_;
    next_ = std::min(next_ * 2, kLast);
    fresh_ = false;
    return std::chrono::duration_cast<Duration>(delay * (1 + 0.5 * random.uniform()));
  }

  // No trouble yet, or two good minutes since the last.
  bool fresh(SteadyTime now) {
    forgive(now);
    return fresh_;
  }

 private:
  void forgive(SteadyTime now) {
    if (!good_since_ || now - *good_since_ < kGoodFor) return;
    next_ = kFirst;
    fresh_ = true;
  }

  Duration next_ = kFirst;
  bool fresh_ = true;
  std::optional<SteadyTime> good_since_;
};

}  // namespace holdfast::cache
