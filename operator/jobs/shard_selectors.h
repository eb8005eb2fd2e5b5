// What selects the objects of some shards, and those that name no shard of this installation: older
// versions' and new ones. Pure.
#pragma once

#include <set>
#include <string>

#include "client/cache/informer.h"

namespace holdfast::jobs {

// By the label of pods and Leases.
cache::Selector by_shard_label(const std::set<int>& selected, int shards);
// Of jobs that `requirement` selects, by the shard in their status, which it always names. One that
// is too long for a request selects the jobs of all shards.
cache::Selector by_job_shard(const std::string& requirement, const std::set<int>& selected,
                             int shards);

}  // namespace holdfast::jobs
