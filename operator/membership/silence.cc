#include "operator/membership/silence.h"

namespace holdfast::membership {
namespace {

// Soon: a replica that joins later counts the Lease's holder as alive for one duration, because it
// has not seen the silence before. Its plan then differs from the others'. A holder that is back
// joins as new.
constexpr int kTidyDurations = 2;
// A replica that is killed often never lives that long, so more dead Leases than this are also
// deleted.
constexpr int kMostDead = 16;

}  // namespace

bool is_alive(Duration silent, Duration lease_duration) { return silent < lease_duration; }

bool is_soon_dead(Duration silent, Duration lease_duration, bool has_held) {
  return is_alive(silent, lease_duration) && silent >= lease_duration / (has_held ? 2 : 3);
}

LeasePtr lease_to_delete(const std::vector<SilentLease>& idle) {
  LeasePtr stale, oldest;
  int dead = 0;
  for (const auto& [lease, silent] : idle) {
    if (silent >= kTidyDurations * lease->duration) stale = lease;
    if (is_alive(silent, lease->duration)) continue;
    ++dead;
    if (!oldest || lease->version < oldest->version) oldest = lease;
  }
  return !stale && dead > kMostDead ? oldest : stale;
}

}  // namespace holdfast::membership
