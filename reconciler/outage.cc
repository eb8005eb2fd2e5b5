#include "reconciler/outage.h"

#include <algorithm>

#include "reconciler/backoff.h"

namespace holdfast::reconciler {

bool is_overdue(const LeaseView& lease, seconds lease_duration, Time now) {
  if (lease.holder.empty() || lease.ended) return false;
  return lease.renewed_at && now - *lease.renewed_at > Duration(lease_duration) * 2 / 3;
}

void HolderCount::add(const LeaseView& lease, seconds lease_duration, const Status& status,
                      Time now) {
  if (status.phase == Phase::kBackoff) {
    const bool waits = status.waiting && status.waiting->reason == Reason::kRestartsSpread;
    held += waits ? 1 : 0;
    lost += waits ? 1 : 0;
    return;
  }
  const bool runs = std::any_of(status.runs.begin(), status.runs.end(), [&](const Run& run) {
    return run.open() && run.attempt == lease.attempt;
  });
  if (!runs) return;
  if (lease.holder.empty() || !lease.renewed || lease.ended) return;
  ++held;
  if (is_overdue(lease, lease_duration, now)) ++lost;
}

int in_all_shards(int counted, std::size_t watched, int shards) {
  const auto ours = static_cast<std::int64_t>(std::max<std::size_t>(watched, 1));
  return static_cast<int>(std::int64_t{counted} * shards / ours);
}

Duration restart_wait(int lost, const std::string& job_uid, std::int64_t attempt) {
  if (lost <= kRestartsAtOnce) return Duration::zero();
  const Duration spread =
      std::min<Duration>(Duration(seconds(lost)) / kRestartsPerSecond, kLongestSpread);
  return part_of(spread, job_uid + "/after-outage/" + std::to_string(attempt));
}

}  // namespace holdfast::reconciler
