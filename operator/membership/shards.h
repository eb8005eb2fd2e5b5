// This replica's shards: which it holds, which it will hand over, and which work is in hand.
// Carries out what reconciler::decide_shards() decides about each shard. Loop only.
//
// A shard is drained before it is handed over: nothing new begins on its jobs, and the work in hand
// ends. While its Lease cannot be written, no other member could take it, so it stays.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "operator/membership/ownership.h"
#include "operator/membership/shard_leases.h"

namespace holdfast::membership {

class Shards {
 public:
  // See Membership::Handlers.
  struct Handlers {
    std::function<void(int shard)> gained;
    std::function<void(int shard)> kept;
    std::function<void(int shard, const char* why)> lost;
    std::function<void(int shard)> draining;
    std::function<void(const std::set<int>& shards)> wanted;
    std::function<std::optional<std::string>(int shard)> record;
    std::function<void(const std::string& windows)> recorded;
  };
  Shards(LeaseRequests& requests, cache::View<CachedLease> cached, MemberWatch& watch,
         const Member& member, Handlers handlers);

  // See Membership.
  using Claim = Ownership::Claim;
  std::optional<Claim> claim(int shard) const;
  bool holds(const Claim& claim) const;
  bool holds(int shard) const;
  bool is_draining(int shard) const { return shards_[shard].draining; }
  std::set<int> held() const;
  std::shared_ptr<void> keep(int shard);
  void take_no_more() { takes_no_more_ = true; }
  std::vector<OwnershipReport::Shard> report() const;

  // In a turn of its own, once for all calls before it.
  void evaluate_soon();
  // Each retry period: decides again, and writes and deletes the Leases that are due.
  void tick();
  // The Lease of a shard has changed.
  void changed(const cache::View<CachedLease>::Change& change);
  // The API server's data was set back: the answers to our own writes no longer count.
  void time_travelled();
  // Drops the shards that are held.
  void drop_all(const char* why);

 private:
  void evaluate();
  reconciler::ShardsView view();
  void carry_out(int shard, reconciler::ShardAction action);
  void drop(int shard, const char* why);
  void report_wanted(const std::vector<reconciler::ShardDecision>& decisions);
  void tidy();

  Loop& loop_;
  LeaseRequests& requests_;
  MemberWatch& watch_;
  const Member& member_;
  Handlers handlers_;

  ShardTable shards_;
  ShardLeases leases_;
  std::set<int> wanted_;  // as last reported
  bool takes_no_more_ = false;
  bool evaluating_ = false;
};

}  // namespace holdfast::membership
