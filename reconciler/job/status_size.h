// Keeps the status of a job with many runs small: etcd takes 1.5 MiB for an object. Internal to
// reconciler/.
#pragma once

#include <cstddef>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// What status.runs takes as JSON, at most. The lists of ended indexes take 600 KB at most: those of
// 100,000 indexes of which every second one has failed.
inline constexpr std::size_t kRunsBytes = std::size_t{400} * 1024;
// A stored job of this size opens no new index beside another one that is open.
inline constexpr std::size_t kLargeJob = std::size_t{1024} * 1024;

// First leaves out all progress messages, then cuts all refusals short, then leaves out the nodes
// of runs whose pods are known. A refusal stays: without it the next holder of the shard would take
// the attempt for one whose pod nobody has asked for.
void keep_within_bytes(Status& status);

}  // namespace holdfast::reconciler
