// Which silences of workers are recorded, and in which shards' Leases: only those that a verdict
// needs. Loop only.
#pragma once

#include <string>

#include "operator/pools/pool_dependencies.h"

namespace holdfast::pools {

struct WorkerWindows {
  const PoolDependencies& deps;

  // What this refers to outlives `keeper`.
  void keep(observe::WindowKeeper& keeper) const;

 private:
  observe::WindowKeeper::Wanted silent(const std::string& key, Duration silent_for) const;
  observe::WindowKeeper::Wanted revoked(const std::string& key) const;
  observe::WindowKeeper::Wanted missing(const std::string& key) const;
};

}  // namespace holdfast::pools
