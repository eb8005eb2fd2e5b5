// What the controller of jobs knows of pools of warm workers (docs/internals/workers.md). It sees
// the free slots for a job's next attempts, and what became of attempts with a place on a worker.
// Loop only. operator/pools implements it.
#pragma once

#include <cstdint>

#include "operator/codecs/job_codec.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

class Places {
 public:
  virtual ~Places() = default;
  // The job's stage has a pool.
  virtual reconciler::PoolView of(const codecs::CachedJob& job) = 0;
  // How many runs of the job wait for a free slot now, and how many others for a worker of their
  // own; zero: none.
  virtual void ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t alone) = 0;
  // This status is about to be written. The slots of its new attempts are taken until the cache
  // shows a later version of the job, or for a short while.
  virtual void placed(const codecs::CachedJob& job, const reconciler::Status& next) = 0;
  // The API server has refused that status for good: the slots are free again.
  virtual void not_placed(const codecs::CachedJob& job) = 0;
  // The run's last attempt has its place on a worker.
  virtual reconciler::SlotView at(const codecs::CachedJob& job,
                                  const reconciler::Run& run) const = 0;
};

}  // namespace holdfast::jobs
