// Which shards' jobs and pods a replica watches (shard_watch.h), and whether it has read them.
//
// While a shard is held but not read, the operator does nothing about its jobs. An object may be
// missing in the cache or in the cluster, and the operator cannot know which. Membership records
// nothing.
//
// Loop only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/shard_watch.h"

namespace holdfast::jobs {

class WatchedShards {
 public:
  struct Dependencies {
    Loop& loop;
    cache::Informer& jobs;  // of job_kind()
    cache::Informer& pods;  // of pod_kind()
    // Jobs and pods of these shards in this watched namespace are in the caches by now; "": in all.
    std::function<void(const std::set<int>& shards, const std::string& watched)> on_read;
    // The pod has left the cache although it is not deleted. Of a job that leaves, the handlers of
    // the cache hear as if it were deleted: they act on nothing of another replica's shards.
    std::function<void(const codecs::CachedPod& pod)> on_drop_pod;
  };
  // Call it before the informers start. `namespaces`: as the informers'.
  WatchedShards(const Dependencies& dependencies, int shards,
                const std::vector<std::string>& namespaces);

  // All shards that this replica has or will have.
  void want(const std::set<int>& shards);
  bool read(int shard, const std::string& namespace_) const;
  // True if it is read in each namespace that can be watched.
  bool read(int shard) const;
  // See ShardWatch; false for other informers.
  bool lists(const cache::Informer& informer) const;

 private:
  void on_read(const std::set<int>& shards, const std::string& watched) const;

  std::function<void(const std::set<int>&, const std::string&)> on_read_;
  ShardWatch jobs_;
  ShardWatch pods_;
};

// Of the jobs of these shards, and of those that name no shard. One that is too long for a request
// selects the jobs of all shards.
cache::Selector job_selector(const std::set<int>& selected, int shards);
// Of the pods of jobs in these shards, and of pods without a label of a shard.
cache::Selector pod_selector(const std::set<int>& selected, int shards);

}  // namespace holdfast::jobs
