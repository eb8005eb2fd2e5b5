// What the rules about a worker need to know of it (reconciler/pool/worker.h), from its pod and its
// Leases. Pure.
#pragma once

#include <string>

#include "operator/pools/pool_codec.h"
#include "operator/pools/worker.h"
#include "operator/pools/worker_slots.h"
#include "reconciler/pool/size.h"
#include "reconciler/pool/work.h"
#include "reconciler/pool/worker.h"
#include "reconciler/types.h"

namespace holdfast::pools {

// `pool`: the pool of this name; null: it does not exist. If the worker has a Lease, the caller
// adds `silent_for`, `lags_for`, `held_back` and `is_needed`. They depend on clocks and on other
// objects.
reconciler::WorkerFacts worker_facts(const Worker& worker, const CachedPool* pool,
                                     reconciler::PodIs pod);

// The record of the attempt's job, `id.job_uid`, about the attempt. `lease_uid`: of the worker.
reconciler::RecordSays record_says(const reconciler::Job& job, const AttemptId& id,
                                   const std::string& lease_uid);

// A worker that has a pod, as the plan of its pool sees it. `slots`: of its worker Lease.
reconciler::PoolWorker planned_worker(const Worker& worker, const WorkerSlots& slots,
                                      SteadyTime steady, Time now);

// It may get new attempts, if its rules say so, too (WorkerDecision::takes).
bool may_take(const Worker& worker, const CachedPool* pool);

}  // namespace holdfast::pools
