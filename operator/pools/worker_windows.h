// Which silences of workers are recorded, and in which shards' Leases: only those that a verdict
// needs. Loop only.
#pragma once

#include "client/kube/client.h"
#include "core/loop.h"
#include "operator/membership/membership.h"
#include "operator/pools/known_pools.h"
#include "operator/pools/worker_times.h"

namespace holdfast::pools {

struct WorkerWindows {
  Loop& loop;
  kube::Client& client;
  const membership::Membership& membership;
  const KnownPools& known;
  WorkerTimes& times;

  // What this refers to outlives `keeper`.
  void keep(observe::WindowKeeper& keeper) const;

 private:
  observe::WindowKeeper::Wanted silent(const std::string& key, Duration silent_for) const;
  observe::WindowKeeper::Wanted revoked(const std::string& key) const;
  observe::WindowKeeper::Wanted missing(const std::string& key) const;
};

}  // namespace holdfast::pools
