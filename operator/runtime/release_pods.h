// `holdfast-operator release-pods`: removes the operator's finalizers from all pods and jobs, for
// uninstalling. Otherwise their deletion would hang once no operator runs. The jobs stay, and go on
// when an operator is back. The steps:
//
// 1. Scale the replicas' Deployment to zero, if a name is given.
// 2. Wait until no replica is alive: each member Lease is gone, or has not changed for its duration
//    by this process's steady clock.
// 3. Release the pods with the finalizer, and the jobs with kOutboxFinalizer, until a whole list
//    has none. A forbidden namespace from the list counts as deleted: log a warning and skip it.
// 4. Fail the batch/v1 Jobs that the operator runs, if it does (lane/fail_batch_jobs.h).
// 5. Check that nobody started a replica meanwhile.
#pragma once

#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

struct ReleaseOptions {
  std::string namespace_;               // the operator's own
  std::vector<std::string> namespaces;  // the pods'; empty: all
  std::string deployment;               // in namespace_; empty: the caller has stopped it
  bool fails_batch_jobs = false;        // --batch-jobs is set
};

// Returns how many pods it released. An error says what to do; another call goes on from there. The
// client must outlive the task. Client::shut_down() ends it.
Task<Result<int>> release_pods(kube::Client& client, ReleaseOptions options, Log log);

// The same as a process, until it is done or a signal comes. Returns the exit code, 0 or 1; the log
// says why. Call block_stop_signals() first.
int run_release_pods(const Options& options, const Log& log);

}  // namespace holdfast::runtime
