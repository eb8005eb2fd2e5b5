// Workers that jobs' records name and that have no Lease. Nothing runs there once their agents'
// deadlines have passed. Somebody may have taken the label off a Lease: no cache shows it, and its
// agent renews it. So nothing counts as lost before all Leases of the namespace were read. Loop
// only.
#pragma once

#include <optional>
#include <string>

#include "core/task.h"
#include "operator/pools/pool_dependencies.h"
#include "operator/pools/worker_tracker.h"

namespace holdfast::pools {

class MissingWorkers {
 public:
  MissingWorkers(const PoolDependencies& dependencies, WorkerTracker& tracker)
      : deps_(dependencies), tracker_(tracker) {}

  // Lets their times run, also for shards of others that this replica may have soon, and whose jobs
  // it has listed: the next owner has then seen it from its start.
  void watch();
  // Nothing runs on the worker with this Lease any more. `pool`: of the job that names it; null: it
  // is not known.
  bool is_over(const Pool* pool, const std::string& ns, const std::string& lease_uid) const;

  // Reads the Leases of workers that are missing for some time. A worker that is found is revoked.
  Task<Result<>> read(std::string pool_key, KnownPool pool);
  // Looks at the jobs of those that are over. When the next look is due; none: none is missing.
  std::optional<Duration> look(const std::string& pool_key, Pool& pool);

 private:
  Duration missing_for(const std::string& ns, const std::string& lease_uid) const;

  const PoolDependencies& deps_;
  WorkerTracker& tracker_;
};

}  // namespace holdfast::pools
