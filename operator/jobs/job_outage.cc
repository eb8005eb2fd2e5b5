// How many holders of job Leases were lost together, which spreads their next attempts.
#include "operator/jobs/job_controller.h"

namespace holdfast::controller {
namespace {

// After an outage thousands of jobs ask, and one count walks through all Leases.
constexpr std::chrono::seconds kCountInterval{1};

}  // namespace

int JobController::lost_together(const CachedJob& job, const reconciler::Run& run,
                                 const CachedHeartbeat& lease) {
  if (!run.open() || run.attempt != lease.lease.attempt ||
      !reconciler::is_overdue(lease.lease, job.job.spec.heartbeat->lease_duration, now()) ||
      !heartbeats_.unheard_since_gap(lease)) {
    return 0;
  }
  return count_holders().lost_together();
}

const reconciler::HolderCount& JobController::count_holders() {
  const SteadyTime steady = loop_.now();
  if (holders_counted_ && steady - *holders_counted_ < kCountInterval) return holders_;
  holders_counted_ = steady;
  holders_ = {};
  heartbeats_.cached().for_each([&](const HeartbeatPtr& cached) {
    const CachedHeartbeat& lease = *cached;
    const auto job = jobs_.get(lease.namespace_ + "/" + lease.job_name);
    if (!job || job->uid != lease.owner_uid || !job->job.spec.heartbeat) return;
    holders_.add(lease.lease, job->job.spec.heartbeat->lease_duration, job->job.status, now());
  });
  return holders_;
}

}  // namespace holdfast::controller
