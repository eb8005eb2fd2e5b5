// This replica's place among the others: its member Lease, and the shards that it holds.
//
//   Membership: one key decides a job's shard; a claim on the shard is the right to act
//   |- Member          when this replica may act: join, renew, lapse, step aside, leave
//   |  `- MemberLease  its own member Lease, and the renew deadline
//   |- MemberWatch     the members' Leases: who lives, and who is dead
//   |- Shards          which shards it takes, holds, drains and hands over
//   |  `- ShardLeases  their Leases, and the silences recorded in them
//   `- ShardCount      the installation's number of shards
//
// A lapsed replica has lost all shards. After it acts again, it takes each of them again.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "operator/membership/member.h"
#include "operator/membership/ownership.h"
#include "operator/membership/ownership_report.h"
#include "operator/membership/shards.h"

namespace holdfast::membership {

class Membership : public Ownership {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
  };
  using Config = MembershipConfig;
  struct Handlers {
    // The shard is ours from now on. Forget earlier knowledge about its jobs.
    std::function<void(int shard)> gained;
    // The hand-over was cancelled; the shard stays ours. Jobs that came due meanwhile were refused,
    // so look at them again.
    std::function<void(int shard)> kept;
    // The shard is no longer ours. `why` is a short word for a metric.
    std::function<void(int shard, const char* why)> lost;
    // The shard will be handed over once its work in hand has ended. May be null.
    std::function<void(int shard)> draining = nullptr;
    // Reads everything again, consistently, and then calls `done`.
    std::function<void(std::function<void()> done)> refresh;
    // Says, for humans, what this replica has not seen for `patience`. Empty: it sees everything.
    // May be null.
    std::function<std::string(Duration patience)> unseen = nullptr;
    // A renewal of ours succeeded: the API server and its storage answer.
    std::function<void()> proof;
    // The membership can never go on.
    std::function<void(Error error)> refuse;
    // The shards that this member has or may have soon. Runs when they change. May be null.
    std::function<void(const std::set<int>& shards)> wanted = nullptr;
    // record: the windows to write into a shard's Lease; none: not known, so keep the old ones. The
    // handler `recorded` gets the windows that another member wrote there (window_keeper.h). Either
    // may be null.
    std::function<std::optional<std::string>(int shard)> record = nullptr;
    std::function<void(const std::string& windows)> recorded = nullptr;
  };
  Membership(const Dependencies& dependencies, Config config, Handlers handlers);

  // The caller starts the caches and waits for them; call join() once they are synced.
  cache::Informer& leases() { return leases_; }
  void join() { member_.join(); }
  // The replica will leave: begin nothing new and take no shard. Work in hand may go on.
  void take_no_more() { shards_.take_no_more(); }
  // Call it when no reconcile is in flight. `left` runs once the member Lease is deleted, or could
  // not be deleted within the limit.
  void leave(std::function<void()> left) { member_.leave(std::move(left)); }

  // Work for the shard is in hand: the shard is not handed over while one of these exists. Each
  // must be destroyed before the membership.
  std::shared_ptr<void> keep(int shard) { return shards_.keep(shard); }

  // Keys: reconciler::shard_key().
  int shard_of(const std::string& key) const;
  // True while the key's shard is held, even if it will be handed over.
  bool holds(const std::string& key) const { return holds_shard(shard_of(key)); }
  bool holds_shard(int shard) const { return shards_.holds(shard); }
  bool is_draining(int shard) const { return shards_.is_draining(shard); }
  int shards() const { return requests_.config().shards; }
  // The shard that this label says; none: it is no label of this installation.
  std::optional<int> labelled(const std::string& label) const;
  std::string shard_label(int shard) const override;
  std::optional<Claim> claim(const std::string& key) const override {
    return claim_shard(shard_of(key));
  }
  std::optional<Claim> claim_shard(int shard) const { return shards_.claim(shard); }
  bool covers(const Claim& claim, const std::string& key) const override {
    return claim.shard == shard_of(key);
  }
  bool holds(const Claim& claim) const override { return shards_.holds(claim); }
  Duration time_left() const override { return member_.lease().time_left(); }
  // How long a dead replica's shards may be held by nobody: after that its intents get no pods.
  Duration takeover() const {
    const reconciler::MemberTimings& timings = requests_.config().timings;
    return timings.lease_duration + timings.retry_period;
  }

  // The API server's data was set back: the answers to our own writes no longer count.
  void time_travelled();

  // The name of our member Lease: no other member has ever had it.
  const std::string& self() const { return member_.lease().name(); }

  // True once it has been a member. Before, a permission or the namespace may be missing.
  bool has_joined() const { return member_.lease().was_confirmed(); }
  OwnershipReport report();
  std::set<int> held_shards() const { return shards_.held(); }

 private:
  void on_lease(const cache::View<CachedLease>::Change& change);

  LeaseRequests requests_;
  cache::Informer leases_;
  const cache::View<CachedLease> cached_;
  ShardCount shard_count_;
  MemberWatch watch_;
  Member member_;
  Shards shards_;
};

}  // namespace holdfast::membership
