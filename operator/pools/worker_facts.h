// What the rules about a worker need to know of it (reconciler/pool/worker.h), from its pod and its
// Leases. Pure.
#pragma once

#include "operator/pools/pool_workers.h"
#include "reconciler/pool/worker.h"

namespace holdfast::controller {

// `pool`: the pool of this name; null: it does not exist. If the worker has a Lease, the caller adds
// `silent_for`, `lags_for`, `held_back` and `is_needed`. They depend on clocks and on other objects.
reconciler::WorkerFacts worker_facts(const Worker& worker, const CachedPool* pool,
                                     reconciler::PodIs pod);

}  // namespace holdfast::controller
