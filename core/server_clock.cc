#include "core/server_clock.h"

#include <algorithm>
#include <cassert>

namespace holdfast {
namespace {

// Two clocks that are both off by the 500 ppm that NTP tolerates part by 1 ms each second.
constexpr std::int64_t kDriftDivisor = 1000;

}  // namespace

void ServerClock::observe(Time date, SteadyTime sent, SteadyTime received) {
  const Duration low = date.time_since_epoch() - received.time_since_epoch();
  const Duration high = date.time_since_epoch() + std::chrono::seconds(1) - sent.time_since_epoch();
  if (known_) {
    const Duration aged = std::max(Duration::zero(), received - updated_) / kDriftDivisor;
    low_ = std::max(low_ - aged, low);
    high_ = std::min(high_ + aged, high);
  }
  if (!known_ || low_ > high_) {  // first answer, or the server's clock was stepped
    low_ = low;
    high_ = high;
  }
  known_ = true;
  updated_ = std::max(updated_, received);
}

Time ServerClock::now(SteadyTime at) const {
  assert(known_);
  return Time(at.time_since_epoch() + low_);
}

}  // namespace holdfast
