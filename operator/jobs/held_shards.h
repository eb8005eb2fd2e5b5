// The shards that this replica holds, and since when. It wakes the jobs of a shard when the shard
// comes, or when more of them can be read. It marks what another replica may have begun. Loop only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "client/kube/client.h"
#include "core/loop.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_facts.h"
#include "operator/jobs/job_memories.h"

namespace holdfast::jobs {

class HeldShards {
 public:
  // `look` gets the keys of jobs to look at: see look_key().
  using Look = std::function<void(const std::string& key)>;
  HeldShards(Loop& loop, const kube::Client& client, const JobCaches& caches,
             const membership::Membership& membership, JobMemories& memories, Look look);

  // Was gained, or kept. Many come together: their jobs are looked at in one go.
  void gained(int shard);
  void lost(int shard);
  // A namespace was read later than the others; "" means all.
  void look_at_namespace(const std::string& watched);
  // The pods of these shards in this watched namespace were read; "" means all.
  void look_at_shards(const std::set<int>& shards, const std::string& watched);

  // The watch shows a job that was not in the cache, or had another shard. It may come from another
  // replica's shard, or from a backup.
  void came(const codecs::CachedJob& job);

  Moment moment_of(const codecs::CachedJob& job) const;

 private:
  using IsMeant = std::function<bool(const std::string& namespace_, int shard)>;
  void look_at_gained();
  void look_at_all(const IsMeant& is_meant);
  void inherit(const codecs::CachedJob& job, const Moment& moment);

  Loop& loop_;
  const kube::Client& client_;
  const JobCaches& caches_;
  const membership::Membership& membership_;
  JobMemories& memories_;
  const Look look_;
  std::set<int> gained_;                 // whose jobs must still be looked at
  std::map<int, SteadyTime> gained_at_;  // of those that are held
};

}  // namespace holdfast::jobs
