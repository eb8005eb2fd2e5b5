// What the silence of members means. `silent`: for how long a member's Lease has not changed, on
// our live clock. `lease_duration`: from the Lease. Pure.
#pragma once

#include <vector>

#include "operator/membership/lease_codec.h"

namespace holdfast::membership {

bool is_alive(Duration silent, Duration lease_duration);

// It is alive, but misses renewals. No other member is silent for half of its duration while a
// server hangs and all members only wait for it. A replica that has never held a shard has no
// changes of pods to miss. It gets true after a third, because its life may be short.
bool is_soon_dead(Duration silent, Duration lease_duration, bool has_held);

struct SilentLease {
  LeasePtr lease;
  Duration silent{0};
};
// Which Lease of these members, which hold nothing, is deleted next. A Lease that was silent for
// two of its durations goes first. Otherwise the oldest dead one goes, if there are more than 16.
// Null: none. Every killed process leaves a Lease behind, and nobody else deletes it.
LeasePtr lease_to_delete(const std::vector<SilentLease>& idle);

}  // namespace holdfast::membership
