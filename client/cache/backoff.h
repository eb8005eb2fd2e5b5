// How long a reflector waits after trouble of one kind: 0.8 s to 30 s, doubling, jittered upwards
// so that a crowd of them does not come back together, forgiven after a good while.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/random.h"
#include "core/time.h"

namespace holdfast::cache {

class Backoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(800);
  // With the largest jitter of half as much again this makes 30 s.
  static constexpr Duration kLast = std::chrono::seconds(20);

  // `first`: the first wait of all, and the first after a good while; zero is none.
  explicit Backoff(Duration good_for, Duration first = kFirst)
      : good_for_(good_for), first_(first), next_(first) {}

  // Things go well from here on, until the next trouble.
  void good(SteadyTime now) {
    if (!good_since_) good_since_ = now;
  }

  // Trouble: how long to wait.
  Duration next(SteadyTime now, Random& random) {
    if (good_since_ && now - *good_since_ >= good_for_) reset();
    good_since_.reset();
    const Duration delay = next_;
    next_ = std::clamp(next_ * 2, kFirst, kLast);
    return std::chrono::duration_cast<Duration>(delay * (1 + 0.5 * random.uniform()));
  }

  void reset() { next_ = first_; }

 private:
  Duration good_for_;
  Duration first_;
  Duration next_;
  std::optional<SteadyTime> good_since_;
};

}  // namespace holdfast::cache
