// A WorkerPool (api/pool.h) under the names that the rules use, and the labels of what is made for
// it.
#pragma once

#include "api/pool.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

using api::kMaxIdleSeconds;
using api::kMaxSlots;
using api::kMaxStartSeconds;
using api::kMaxStopSeconds;
using api::kMaxWorkers;
using api::kMinLeaseSeconds;
using api::PoolSpec;
using api::PoolStatus;
using api::StartRecord;
using api::WorkerCounts;

inline constexpr const char* kPoolPlural = "workerpools";
inline constexpr const char* kPoolKind = "WorkerPool";

// On each worker's pod, and the first one on its two Leases.
inline constexpr const char* kWorkerPoolLabel = "holdfast.dev/worker-pool";
// What the pod was made from: see worker_hash() (operator/pools/worker_pod.h).
inline constexpr const char* kWorkerHashLabel = "holdfast.dev/worker-hash";

}  // namespace holdfast::reconciler
