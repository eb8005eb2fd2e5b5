// Whether the API server itself refuses what old workers write to their job's Lease (the fence of
// docs/fencing.md). Said at start; nothing else hangs on it.
#pragma once

#include "operator/core/log.h"
#include "operator/core/task.h"
#include "operator/kube/client.h"

namespace holdfast::runtime {

// The client outlives it: when it is shut down this ends.
Task<void> report_fence(kube::Client& client, Log log);

}  // namespace holdfast::runtime
