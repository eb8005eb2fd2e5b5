// What a pool's status says of what plan_pool() has seen. Part of size.cc. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "reconciler/pool/size.h"

namespace holdfast::reconciler {

struct PoolSeen {
  std::vector<const PoolWorker*> starting;
  std::vector<const PoolWorker*> live;
  std::vector<const PoolWorker*> draining;
  std::vector<const PoolWorker*> failing;  // of the current template; some of them still start
  std::vector<const PoolWorker*> excused;  // served for a moment, while another worker lasts
  std::int64_t old = 0;                    // of an older template, of the first three
};

// The next status. `record` has the failures of starts, and all that others have written.
PoolStatus told(const PoolState& state, const PoolSeen& seen, PoolStatus record);

}  // namespace holdfast::reconciler
