// Answers the controller of jobs about the slots of pools (operator/jobs/places.h). Loop only.
#pragma once

#include "operator/jobs/places.h"
#include "operator/pools/jobs_without_pool.h"
#include "operator/pools/missing_workers.h"
#include "operator/pools/pool_dependencies.h"

namespace holdfast::pools {

class SlotPlaces : public jobs::Places {
 public:
  SlotPlaces(const PoolDependencies& dependencies, JobsWithoutPool& without_pool,
             const MissingWorkers& missing)
      : deps_(dependencies), without_pool_(without_pool), missing_(missing) {}

  reconciler::PoolView of(const codecs::CachedJob& job) override;
  void ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t alone) override;
  void placed(const codecs::CachedJob& job, const reconciler::Status& next) override;
  void not_placed(const codecs::CachedJob& job) override;
  reconciler::SlotView at(const codecs::CachedJob& job, const reconciler::Run& run) const override;

 private:
  reconciler::SlotView at_missing(const codecs::CachedJob& job, const reconciler::Run& run) const;
  // The place as the two Leases show it. `answer`: the worker's about the attempt, or null.
  reconciler::SlotView in_leases(const codecs::CachedJob& job, const reconciler::Run& run,
                                 Worker& worker, const Answer*& answer) const;
  bool has_looked(Worker& worker) const;

  const PoolDependencies& deps_;
  JobsWithoutPool& without_pool_;
  const MissingWorkers& missing_;
};

}  // namespace holdfast::pools
