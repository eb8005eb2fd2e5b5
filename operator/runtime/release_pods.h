// `holdfast-operator release-pods`: takes the operator's finalizer off all pods, so that none hangs
// when nobody is there any more to do it. For uninstalling; the jobs stay, and go on when an
// operator is back.
//
// 1. scales the Deployment of the replicas to zero, where one is named;
// 2. waits until no replica is alive: each member Lease is gone, or has not changed for as long as
// it
//    is valid, by this process's own steady clock;
// 3. releases pods, found by the finalizer alone, until a whole list has none; a listed namespace
//    that may not be looked at is passed over with a warning, for it was deleted;
// 4. looks that no replica was started meanwhile.
#pragma once

#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

struct ReleaseOptions {
  std::string namespace_;               // of the operator's own objects
  std::vector<std::string> namespaces;  // whose pods; empty: all
  std::string deployment;               // in namespace_; empty: whoever calls has stopped it
};

// The number of pods that were released. An error says what to do; calling it again goes on. The
// client outlives it: when it is shut down this ends.
Task<Result<int>> release_pods(kube::Client& client, ReleaseOptions options, Log log);

// The same as a process, until it is done or a signal comes. The exit code: 0 or 1, the log says
// why. block_stop_signals() was called.
int run_release_pods(const Options& options, const Log& log);

}  // namespace holdfast::runtime
