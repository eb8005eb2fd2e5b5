// Who works on which job. A key decides its shard, out of a fixed number. Each shard is a Lease,
// which one member at a time holds. Pure: the state of members and shards goes in, an action for
// each shard comes out. The loop, requests and clocks are in operator/membership/membership.h.
//
// Shards only keep replicas from doing the same work. Outcomes are right without them: two replicas
// that act on one job collide on its resourceVersion or its pod's name.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

inline constexpr int kMaxShards = 1024;

// The key of the shard whose holder works on the job. Replicas select by the shard in its status. If
// the status has none, or one of another number of shards, the key is own_shard_key().
std::string shard_key(const Job& job);
// A job's shard depends on its UID, or on its namespace if it has a queue or a pool. So one replica
// knows all jobs of a queue or a pool, and these have the same shard. Without a queue, a job that
// runs a batch/v1 Job keeps the shard that it was made with, which is that Job's.
const std::string& own_shard_key(const Job& job);
// The status says a shard that the job's queue or pool does not have, as after a restore. Its holder
// does one thing for the job: it writes the right one.
bool belongs_elsewhere(const Job& job, int shards);
// In [0, shards). Of the key "<label>/<rest>" it is the labelled shard, if there are still as many.
int shard_of(const std::string& key, int shards);
// The key of a job with this label; `own` if the label is empty.
std::string fixed_shard_key(const std::string& label, const std::string& own);

// The value of kShardLabel of a job's pods: "7-of-32". So replicas need to watch the pods of their
// own shards only. With another number of shards, an old label means nothing.
std::string shard_label(int shard, int shards);
// The shard whose holder judges the job's pods: the job's, or the right one of a job that belongs
// elsewhere.
int shard_of_pods(const Job& job, int shards);
// The label that a pod of the job needs so that this holder looks at it. Empty: it has that already.
// All replicas see a pod whose label means nothing. But the holder of its UID's shard looks for its
// job, once the job has left that one's cache.
std::string due_shard_label(const Job& job, const std::string& label, int shards);
// Both are of the same number of shards, and name different ones. So who watches `ours` does not see
// what has `label`.
bool names_another_shard(const std::string& label, const std::string& ours);
// None: no label of an installation with this number of shards.
std::optional<int> labelled_shard(const std::string& label, int shards);

// The planned holder of each shard. Members get equal numbers of shards, or one more. Rendezvous
// hashing moves few shards when a member comes or goes. Replicas that know the same members, in any
// order, compute the same plan. Empty names: there are no members.
std::vector<std::string> plan_shards(int shards, const std::vector<std::string>& members);

// One replica's view of a member. It is alive if its Lease exists and changed within its duration.
// A member that cannot see what it needs steps aside: its Lease says so, and the plan leaves it
// out. If all members step aside, all of them count.
struct MemberState {
  bool alive = false;
  bool aside = false;  // for ourselves: as in our last acknowledged renewal
};

struct ShardState {
  std::string holder;    // in its Lease; empty: no holder or no Lease
  bool held = false;     // by us: acknowledged compare-and-swap in this tenure
  bool busy = false;     // reconciles of its jobs are in flight here, of any tenure
  bool pending = false;  // our write of its Lease is in progress
};

struct ShardsView {
  std::string self;
  bool acting = false;  // our renewal is recent, and we have read everything since the last lapse
  std::map<std::string, MemberState> members;
  std::vector<ShardState> shards;
};

enum class ShardAction {
  kNone,
  kTake,      // compare-and-swap the holder to us: it is free, or ours from an earlier tenure
  kTakeOver,  // the same, after a live read shows that the holder's member Lease is gone or old
  kDrain,     // another member will get it: begin nothing new on it
  kRelease,   // nothing is in flight any more: compare-and-swap the holder to nobody
  kDrop,      // somebody took it from us: stop at once
};

struct ShardDecision {
  ShardAction action = ShardAction::kNone;
  std::string owner;  // the planned holder
  std::string why;    // for humans, in /debug/ownership
};

std::vector<ShardDecision> decide_shards(const ShardsView& view);

// The shards that we have or may have soon, so that we can prepare for them. We hold them, these
// decisions plan them for us, or we would get them if the members `soon_dead` died.
std::set<int> wanted_shards(const ShardsView& view, const std::vector<ShardDecision>& decisions,
                            const std::set<std::string>& soon_dead);

// The view shows another member, `holder`, that is alive.
bool lives_elsewhere(const ShardsView& view, const std::string& holder);
// Throws BrokenInvariant if a shard with this `holder` must not be taken: that member is alive.
void check_take(const ShardsView& view, const std::string& holder);

// Checks lease duration > renew deadline > retry period * 1.2, as client-go's leader election does,
// and the needs of the staleness clocks. Empty: they fit; else says what to change.
struct MemberTimings {
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};
std::string misfit(const MemberTimings& timings);

}  // namespace holdfast::reconciler
