// How long a reflector waits after trouble of one kind: 0.8 s, doubling, up to 30 s.
// Jitter only lengthens a wait, so that many reflectors do not return at the same moment. After a
// good while the wait starts at 0.8 s again.
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
  // With the largest jitter (50 %) this is 30 s.
  static constexpr Duration kLast = std::chrono::seconds(20);

  // `first` is the first wait, also after a good while; zero means no wait.
  explicit Backoff(Duration good_for, Duration first = kFirst)
      : good_for_(good_for), first_(first), next_(first) {}

  // No trouble from now on, until next().
  void good(SteadyTime now) {
    if (!good_since_) good_since_ = now;
  }

  // Reports trouble. Returns how long to wait.
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
