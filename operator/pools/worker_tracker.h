// Keeps what watches and the answers to our own requests show of workers. It updates a worker's
// slots in the book of its pool and its silences, and decides who is looked at again. Loop only.
#pragma once

#include <string>

#include "operator/pools/pool_dependencies.h"
#include "reconciler/pool/worker.h"

namespace holdfast::pools {

class WorkerTracker {
 public:
  explicit WorkerTracker(const PoolDependencies& dependencies) : deps_(dependencies) {}

  // `is_own`: the answer to a request of ours.
  void show_pod(WorkerPodPtr pod, bool is_own);
  void show_lease(WorkerLeasePtr lease, bool is_own);
  void pod_is_gone(const WorkerPtr& worker);
  void lease_is_gone(const WorkerPtr& worker, bool is_work);
  // Pods that this process created, and that were deleted before the watch could show them.
  void forget_unseen_pods(const Pool& pool);
  void time_travelled();

  // Decides about the worker once more. Its slots, and whether it takes attempts, go into the book.
  reconciler::WorkerDecision refresh(Worker& worker);

 private:
  void leases_changed(const WorkerPtr& worker, const WorkerLeasePtr& before,
                      reconciler::WorkerState state_before);
  void lost_lease(Worker& worker, const std::string& lease_uid);
  void count_hand_backs(const Worker& worker, const reconciler::WorkerView& before);
  reconciler::WorkerFacts facts(const Worker& worker);
  reconciler::PodIs pod_is(const Worker& worker);
  bool is_needed(const Worker& worker);

  const PoolDependencies& deps_;
};

}  // namespace holdfast::pools
