// The installation's number of shards. The replica that creates shard 0's Lease records it there.
// A replica with another number would share the work out differently, so it refuses itself. Loop
// only.
#pragma once

#include <functional>

#include "client/cache/view.h"
#include "operator/membership/lease_requests.h"

namespace holdfast::membership {

class ShardCount {
 public:
  // `refuse`: this replica can never go on.
  ShardCount(LeaseRequests& requests, cache::View<CachedLease> cached,
             std::function<void(Error error)> refuse);

  // Before the first step of a member: records the number, or compares it by a live read.
  Task<Result<>> check();
  // True, and refused, if this Lease of a shard has another number.
  bool refuses(const CachedLease& lease);

 private:
  LeaseRequests& requests_;
  const cache::View<CachedLease> cached_;
  std::function<void(Error error)> refuse_;
};

}  // namespace holdfast::membership
