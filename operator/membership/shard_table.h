// What this replica knows of each shard, besides its Lease. Values only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "operator/membership/lease_codec.h"

namespace holdfast::membership {

struct KnownShard {
  bool held = false;
  bool draining = false;     // it will be handed over; begin nothing new on it
  bool pending = false;      // a write of its Lease, or a read before it, is in progress
  std::uint64_t tenure = 0;  // how often it was gained
  // The answer to our last write of its Lease. The cache counts once it is as new.
  LeasePtr written;
  std::string why;  // of the last decision
  std::string planned;
  SteadyTime recorded_at{};  // when its windows were last written here
  int kept = 0;              // how many pieces of work are in hand
  int unseen = 0;            // creations in a row that found a Lease unknown to the watch
};

class ShardTable {
 public:
  explicit ShardTable(int shards) : shards_(static_cast<std::size_t>(shards)) {}

  int size() const { return static_cast<int>(shards_.size()); }
  KnownShard& operator[](int shard) { return shards_[static_cast<std::size_t>(shard)]; }
  const KnownShard& operator[](int shard) const { return shards_[static_cast<std::size_t>(shard)]; }

  int pending() const { return count(&KnownShard::pending); }
  bool has_ever_held() const {
    return std::any_of(shards_.begin(), shards_.end(),
                       [](const KnownShard& shard) { return shard.tenure > 0; });
  }

 private:
  int count(bool KnownShard::*is) const {
    return static_cast<int>(std::count_if(shards_.begin(), shards_.end(),
                                          [is](const KnownShard& shard) { return shard.*is; }));
  }

  std::vector<KnownShard> shards_;
};

}  // namespace holdfast::membership
