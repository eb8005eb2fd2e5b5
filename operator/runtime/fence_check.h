// Whether the API server itself refuses what old workers write to their job's Lease (the fence of
// docs/fencing.md). Said at start; nothing else hangs on it.
#pragma once

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"

namespace holdfast::runtime {

// The client outlives it: when it is shut down this ends.
Task<void> report_fence(kube::Client& client, Log log);

}  // namespace holdfast::runtime
