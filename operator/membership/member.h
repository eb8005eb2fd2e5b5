// This replica as a member: when it may act. Loop only.
//
// - join. It checks the installation's number of shards, and creates its member Lease.
// - renew. Every retry period, by compare-and-swap.
// - lapse. The renew deadline has passed, or our member Lease is gone. The replica drops all shards
//   at once. It acts again once a renewal has succeeded and it has read everything again.
// - step aside. A member that cannot see what it needs says so on its member Lease. It then gets no
//   shards, and gives up its own, as long as another member can see.
// - wait. Renewals, too, obey the API server's Retry-After. The claim may lapse meanwhile. That is
//   safe: the others take over.
// - leave. It deletes its member Lease. That frees its shards.
#pragma once

#include <functional>
#include <string>

#include "operator/membership/member_lease.h"
#include "operator/membership/member_watch.h"
#include "operator/membership/shard_count.h"

namespace holdfast::membership {

class Member {
 public:
  using State = MembershipState;
  struct Handlers {
    // See Membership::Handlers.
    std::function<void(std::function<void()> done)> refresh;
    std::function<std::string(Duration patience)> unseen;
    std::function<void()> proof;
    // A retry period has begun.
    std::function<void()> ticked;
    // The decisions about shards may differ now.
    std::function<void()> changed;
    // Drop all shards at once. `why` is a short word for a metric.
    std::function<void(const char* why)> drop_all;
  };
  Member(LeaseRequests& requests, Random& random, MemberWatch& watch, ShardCount& shard_count,
         Handlers handlers);
  ~Member();

  void join();
  // See Membership::leave().
  void leave(std::function<void()> left);
  void lapse(const char* why);

  State state() const { return state_; }
  bool acts() const { return state_ == State::kActing && lease_.time_left() > Duration::zero(); }
  // It takes part in the sharing out. While it reads, it may still have shards to give up.
  bool takes_part() const;
  // Rises with each lapse; earlier answers no longer count.
  std::uint64_t tenure() const { return tenure_; }
  const MemberLease& lease() const { return lease_; }

 private:
  void tick();
  void beat_if_allowed();
  Task<void> beat();
  Task<Result<>> enter();
  Task<Result<>> renew();
  void renewed(SteadyTime sent);
  void rejoin_as_new(const char* why);
  void read_world();
  void world_read();
  std::string reason_to_step_aside() const;
  Task<void> say_goodbye();

  Loop& loop_;
  const Log& log_;
  LeaseRequests& requests_;
  MemberWatch& watch_;
  ShardCount& shard_count_;
  Handlers handlers_;

  MemberLease lease_;
  State state_ = State::kStarting;
  SteadyTime not_before_{};  // the API server's Retry-After, for our member Lease
  SteadyTime reading_since_{};
  std::uint64_t tenure_ = 0;
  bool beating_ = false;

  TimerId tick_timer_ = 0;
  TimerId lapse_timer_ = 0;
  std::function<void()> left_;
};

}  // namespace holdfast::membership
