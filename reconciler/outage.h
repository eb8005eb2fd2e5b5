// If an outage of the API server lasts longer than the agents, all jobs with a heartbeat are lost
// at one moment. Their next attempts are spread over a time that grows with their number.
//
// The number of lost jobs comes from stored data: the Lease's last renewal and the job's status. So
// a replica that starts in the middle counts the same. The renewal's time is from its holder's
// clock. A wrong clock only changes the wait of a restart, within kLongestSpread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// kRestartsAtOnce jobs restart at once. More jobs restart at kRestartsPerSecond on average, and
// none waits longer than kLongestSpread.
inline constexpr int kRestartsAtOnce = 20;
inline constexpr int kRestartsPerSecond = 20;
inline constexpr seconds kLongestSpread{300};

// True if the holder has not renewed for 2/3 of the duration: its agent has fenced itself.
bool is_overdue(const LeaseView& lease, seconds lease_duration, Time now);

// All holders of the shards that this replica watches.
struct HolderCount {
  int held = 0;  // the recorded attempt runs, or was lost and has no successor yet
  int lost = 0;  // of these: overdue, or already delayed by this

  void add(const LeaseView& lease, seconds lease_duration, const Status& status, Time now);
  // How many were lost together. Zero: most holders live, so it was no outage.
  int lost_together() const { return 2 * lost > held ? lost : 0; }
};

// What all replicas count, if one has counted so many in `watched` of all `shards`.
int in_all_shards(int counted, std::size_t watched, int shards);

// The extra wait of the next attempt after its back-off, if `lost` attempts were lost together. It
// is at most min(lost / kRestartsPerSecond, kLongestSpread), and zero up to kRestartsAtOnce. It
// depends only on `lost`, the job's UID and the ended attempt.
Duration restart_wait(int lost, const std::string& job_uid, std::int64_t attempt);

}  // namespace holdfast::reconciler
