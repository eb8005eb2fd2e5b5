// The operator's Leases, as its replicas write them: one for each replica, one for each shard.
#pragma once

#include "core/json.h"
#include "core/time.h"

namespace holdfast::plugin {

// That of a replica, which a replica that stops takes away. The others are of shards.
bool is_replica(const Json& lease);

// Its holder has renewed it in time.
bool replica_lives(const Json& lease, Time now);

// How many shards the installation has, as the replica says; 0: it does not.
int shards_of(const Json& lease);

}  // namespace holdfast::plugin
