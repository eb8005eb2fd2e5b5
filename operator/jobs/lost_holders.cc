#include "operator/jobs/lost_holders.h"

namespace holdfast::jobs {
namespace {

// After an outage thousands of jobs ask, and one count walks through all Leases.
constexpr std::chrono::seconds kCountInterval{1};

}  // namespace

int LostHolders::lost_together(const codecs::CachedJob& job, const reconciler::Run& run,
                               const codecs::CachedHeartbeat& lease) {
  if (!run.open() || run.attempt != lease.lease.attempt ||
      !reconciler::is_overdue(lease.lease, job.job.spec.heartbeat->lease_duration, now()) ||
      !caches_.heartbeats().unheard_since_gap(lease)) {
    return 0;
  }
  return caches_.in_all(count().lost_together());
}

const reconciler::HolderCount& LostHolders::count() {
  const SteadyTime steady = loop_.now();
  if (counted_at_ && steady - *counted_at_ < kCountInterval) return holders_;
  counted_at_ = steady;
  holders_ = {};
  caches_.heartbeats().cached().for_each([&](const codecs::HeartbeatPtr& lease) {
    const codecs::JobPtr job = caches_.job_of(*lease);
    if (!job || !job->job.spec.heartbeat) return;
    holders_.add(lease->lease, job->job.spec.heartbeat->lease_duration, job->job.status, now());
  });
  return holders_;
}

}  // namespace holdfast::jobs
