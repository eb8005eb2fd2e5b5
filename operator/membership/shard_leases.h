// Reads and writes the shards' Leases for this replica. Each write is a compare-and-swap on the
// Lease that the decision was based on. Loop only.
//
// - take. Only an acknowledged write takes a shard.
// - take over: only after a live read of the dead member's Lease.
// - record. Each write also records the silences that the holder has seen. While there are silent
//   subjects, the holder writes at least every 10 s. The next owner continues from the record.
//
// A write that fails changes nothing: the watch or the next tick decides again. An immediate retry
// would be a hot loop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/membership/member.h"
#include "operator/membership/shard_table.h"

namespace holdfast::membership {

class ShardLeases {
 public:
  struct Handlers {
    std::function<void(int shard)> gained;
    // A write was acknowledged: decide again.
    std::function<void()> written;
    // See Membership::Handlers. May be null.
    std::function<std::optional<std::string>(int shard)> record;
  };
  ShardLeases(LeaseRequests& requests, cache::View<CachedLease> cached, MemberWatch& watch,
              const Member& member, ShardTable& shards, Handlers handlers);

  // The newer of the watch and of the answers to our own writes. Null: none.
  LeasePtr get(int shard) const;
  // One more shard's Lease may be written now.
  bool has_room() const;

  // `before`: the Lease that the decision was based on; null: none.
  Task<void> take(int shard, LeasePtr before);
  Task<void> take_over(int shard);
  // Gives the shard to nobody. It is no longer held.
  Task<void> release(int shard);
  // Writes the records that are due. Nothing, if there is nothing to record and no old record to
  // remove.
  void keep_records();

 private:
  Task<void> write_record(int shard, LeasePtr before, std::string windows);
  std::string windows_of(int shard, const CachedLease* before) const;
  void note_written(KnownShard& ours, const JsonView& answer);
  void take_failed(int shard, const Error& error);

  LeaseRequests& requests_;
  const cache::View<CachedLease> cached_;
  MemberWatch& watch_;
  const Member& member_;
  ShardTable& shards_;
  Handlers handlers_;
};

}  // namespace holdfast::membership
