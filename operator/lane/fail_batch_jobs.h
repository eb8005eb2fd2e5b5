// For uninstalling: fails the batch/v1 Jobs that Holdfast runs. spec.managedBy cannot be changed,
// so no other controller would ever end them. Their DurableJobs and pods stay.
#pragma once

#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"

namespace holdfast::lane_controller {

// Call it when no replica runs. `namespaces`: empty: all. Returns how many Jobs it has failed. Jobs
// that change meanwhile are read again. The client must outlive the task.
Task<Result<int>> fail_batch_jobs(kube::Client& client, std::vector<std::string> namespaces,
                                  Log log);

}  // namespace holdfast::lane_controller
