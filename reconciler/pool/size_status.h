// The workers of a pool as plan_pool() has them, and what the pool's status says of them. Part of
// size.cc. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "reconciler/pool/size.h"
#include "reconciler/pool/start_failures.h"

namespace holdfast::reconciler {

// The workers whose pods can serve, or do. Others are gone, or about to be.
struct PoolSeen {
  std::vector<const PoolWorker*> starting;
  std::vector<const PoolWorker*> live;
  std::vector<const PoolWorker*> draining;
  std::int64_t old = 0;      // of an older template
  std::int64_t rolling = 0;  // of those: they drain, and may hold attempts
};
// Keeps pointers into the state.
PoolSeen sorted(const PoolState& state);

// The next status, with this record of starts. It keeps what others have written.
PoolStatus next_status(const PoolState& state, const PoolSeen& seen, const StartFailures& failures,
                       const StartRecord& starts);

}  // namespace holdfast::reconciler
