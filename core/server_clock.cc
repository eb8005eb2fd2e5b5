#include "core/server_clock.h"

#include <algorithm>
#include <cassert>

namespace holdfast {
namespace {

// Two clocks that are both off by the 500 ppm that NTP tolerates part by 1 ms each second.
constexpr std::int64_t kDriftDivisor = 1000;
// How much slower the offset falls than the steady clock rises. So their sum never falls.
constexpr std::int64_t kSlewDivisor = 2;

}  // namespace

void ServerClock::observe(Time date, SteadyTime sent, SteadyTime received) {
  const Duration low = date.time_since_epoch() - received.time_since_epoch();
  const Duration high = date.time_since_epoch() + std::chrono::seconds(1) - sent.time_since_epoch();
  if (!known_) {
    known_ = true;
    updated_ = above_at_ = received;
    low_ = above_ = low;
    high_ = high;
    return;
  }
  const Duration age = std::max(Duration::zero(), received - updated_);
  const Duration oldest = low_ - age / kDriftDivisor;
  const Duration newest = high_ + age / kDriftDivisor;
  const bool is_behind = high < oldest;
  const bool is_ahead = low > newest;
  if (is_behind && is_ignored(oldest - high, received)) {
    has_ignored_ = true;
    return;
  }
  const bool may_be_wrong = is_ahead && low - newest > kLeap;
  if (may_be_wrong && received - updated_ < kFollowsSoon) return;
  if (is_ahead) gap_ = low - newest + std::chrono::seconds(1);
  if (is_ahead || (has_ignored_ && !is_behind)) gap_seen_ = received;
  has_ignored_ = false;
  const SteadyTime at = std::max({received, above_at_, read_until_});
  above_ = shown(at);
  above_at_ = at;
  low_ = is_behind || is_ahead ? low : std::max(oldest, low);
  high_ = is_behind || is_ahead ? high : std::min(newest, high);
  updated_ = std::max(updated_, received);
}

bool ServerClock::is_ignored(Duration behind, SteadyTime received) const {
  const bool is_known_gap = behind <= gap_ && received - gap_seen_ < kFollowsFor;
  return received - updated_ < (is_known_gap ? Duration(kFollowsFor) : Duration(kFollowsSoon));
}

Duration ServerClock::shown(SteadyTime at) const {
  const Duration since = std::max(Duration::zero(), at - above_at_);
  return std::max(low_, above_ - since / kSlewDivisor);
}

Time ServerClock::now(SteadyTime at) const {
  assert(known_);
  read_until_ = std::max(read_until_, at);
  return Time(at.time_since_epoch() + shown(at));
}

}  // namespace holdfast
