// Checks whether the API server refuses writes of old workers to their job's Lease (the fence of
// docs/fence-messages.md). The operator logs this at start; nothing else depends on it.
#pragma once

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"

namespace holdfast::runtime {

// The client must outlive the task. Client::shut_down() ends it.
Task<void> report_fence(kube::Client& client, Log log);

}  // namespace holdfast::runtime
