// After an outage of the API server that outlasts their agents, all jobs with a heartbeat are lost
// at one moment. Their next attempts are spread over a time that grows with their number.
//
// Who was lost is read from what is persisted: the Lease's last renewal and the job's status. So a
// replica that starts in the middle counts the same. The renewal's time is its holder's; a clock
// that is wrong changes how long a restart waits, within kLongestSpread, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// So many start at once; of more, so many a second on average, and none later than the longest.
inline constexpr int kRestartsAtOnce = 20;
inline constexpr int kRestartsPerSecond = 20;
inline constexpr seconds kLongestSpread{300};

// status.waiting.reason of a job whose next attempt is held back by this.

// The holder has not renewed for two thirds of the duration: its agent has fenced itself.
bool is_overdue(const LeaseView& lease, seconds lease_duration, Time now);

// All holders that this replica knows of.
struct HolderCount {
  int held = 0;  // the attempt is on record as running, or lost and not followed yet
  int lost = 0;  // of them: overdue, or held back by this already

  void add(const LeaseView& lease, seconds lease_duration, const Status& status, Time now);
  // That many were lost together. Zero: most others live, so an outage was not the cause.
  int lost_together() const { return 2 * lost > held ? lost : 0; }
};

// How long the next attempt waits on top of its back-off when so many were lost together: at most
// min(lost / kRestartsPerSecond, kLongestSpread), and nothing up to kRestartsAtOnce. It hangs on
// the job's UID and the ended attempt alone.
Duration restart_wait(int lost, const std::string& job_uid, std::int64_t attempt);

}  // namespace holdfast::reconciler
