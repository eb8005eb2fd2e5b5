// Who works on which job: jobs fall into a fixed number of shards by UID, each shard is a Lease
// that one member at a time holds. Pure: what is known of members and shards in, what to do about
// each shard out. Loop, requests and clocks are the membership's
// (operator/membership/membership.h).
//
// Shards keep replicas out of each other's way. They are not what makes outcomes right: two
// replicas that act on one job collide on its resourceVersion or its pod's name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::reconciler {

inline constexpr int kMaxShards = 1024;

// In [0, shards).
int shard_of(const std::string& job_uid, int shards);

// The planned holder of each shard: every member gets the same number of shards or one more, by
// rendezvous hashing, so that few shards move when a member comes or goes. The same on every
// replica that knows the same members, in whatever order. Empty names: there is no member.
std::vector<std::string> plan_shards(int shards, const std::vector<std::string>& members);

// As one replica knows a member: its Lease exists, and was seen to change within its duration. One
// that cannot see what it needs steps aside: its Lease says so, and the plan is made without it. It
// counts all the same where every member has stepped aside.
struct MemberState {
  bool alive = false;
  bool aside = false;  // of ourselves: as our last acknowledged renewal said
};

struct ShardState {
  std::string holder;    // as its Lease says; empty: none, or there is no Lease yet
  bool held = false;     // by us: an acknowledged compare-and-swap of ours, in this tenure
  bool busy = false;     // reconciles of its jobs are in flight here, also of an earlier tenure
  bool pending = false;  // a write of ours on its Lease is under way
};

struct ShardsView {
  std::string self;
  bool acting = false;  // our own renewal is young enough, and the world was read since it was not
  std::map<std::string, MemberState> members;
  std::vector<ShardState> shards;
};

enum class ShardAction {
  kNone,
  kTake,      // compare-and-swap the holder to us: it is free, or ours from an earlier tenure
  kTakeOver,  // the same, once a live read has shown that the holder's member Lease is gone or old
  kDrain,     // it is to go to another member: begin nothing new on it
  kRelease,   // and now that nothing is in flight: compare-and-swap the holder to nobody
  kDrop,      // it was taken from us: stop at once
};

struct ShardDecision {
  ShardAction action = ShardAction::kNone;
  std::string owner;  // whom the plan gives it to
  std::string why;    // for people, in /debug/ownership
};

std::vector<ShardDecision> decide_shards(const ShardsView& view);

// lease duration > renew deadline > retry period * 1.2, as client-go's leader election demands, and
// what the clocks of staleness need. Empty: they fit; else what to change.
struct MemberTimings {
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};
std::string misfit(const MemberTimings& timings);

}  // namespace holdfast::reconciler
