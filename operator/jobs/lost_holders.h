// How many holders of job Leases an outage of the API server lost together, which spreads their
// next attempts. A replica counts those of its own jobs, and all others lost as many for each
// shard. The rules are in reconciler/outage.h. Loop only.
#pragma once

#include <optional>

#include "client/kube/client.h"
#include "core/loop.h"
#include "operator/jobs/job_caches.h"
#include "reconciler/outage.h"

namespace holdfast::jobs {

class LostHolders {
 public:
  LostHolders(Loop& loop, const kube::Client& client, const JobCaches& caches)
      : loop_(loop), client_(client), caches_(caches) {}

  // With the holder of this run's Lease; zero: no outage lost it. The job has a heartbeat.
  int lost_together(const codecs::CachedJob& job, const reconciler::Run& run,
                    const codecs::CachedHeartbeat& lease);

 private:
  const reconciler::HolderCount& count();
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  const kube::Client& client_;
  const JobCaches& caches_;
  reconciler::HolderCount holders_;
  std::optional<SteadyTime> counted_at_;
};

}  // namespace holdfast::jobs
