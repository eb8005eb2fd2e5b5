// The nodes that the next pods of a job or pool are kept away from. Pure.
//
// Kubernetes marks a node NotReady some 50 to 60 s after its last sign of life
// (kube-controller-manager's --node-monitor-grace-period, and its look every 5 s). Until then the
// scheduler likes a dead node: nothing new runs there.
#pragma once

#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// At most so many of them for a pod.
inline constexpr std::size_t kLostNodesLimit = 3;
// So long after the loss. By then Kubernetes has marked the node, or the node is back.
inline constexpr seconds kLostNodeAvoided{60};

// Where an attempt of the job has fallen silent within kLostNodeAvoided, the last one first, each
// once. status.history knows it, so a job whose runs end quickly forgets it sooner. A node that is
// gone needs no wish: nothing can be bound to it.
std::vector<std::string> lost_nodes(const Status& status, Time now);

}  // namespace holdfast::reconciler
