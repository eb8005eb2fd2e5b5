// Which pods a replica watches: the pods of the shards that it has, or will have soon. It also
// watches all pods without a label of a shard (an older version's). So the work of other replicas
// costs it nothing.
//
//   want({7, 12})    Both are listed, together with what was watched before.
//   read(7, ns)      From now on the cache is as complete for shard 7 as any watched cache.
//   want({7})        After kLinger the pods of 12 leave the cache. After a lapse a replica mostly
//                    gets its shards back, and then needs no list.
//
// While a shard is held but not read, the operator does nothing about its jobs. A pod may be
// missing in the cache or in the cluster, and the operator cannot know which. Membership records
// nothing.
//
// Loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "core/loop.h"
#include "operator/codecs/pod_codec.h"

namespace holdfast::jobs {

class PodShards {
 public:
  static constexpr std::chrono::seconds kLinger{60};
  // How long a list may hold up the next one, once another namespace's has come.
  static constexpr std::chrono::seconds kPatience{5};

  struct Dependencies {
    Loop& loop;
    cache::Informer& pods;  // of pod_kind()
    // The pods of these shards in this watched namespace are in the cache by now; "": in all.
    std::function<void(const std::set<int>& shards, const std::string& watched)> on_read;
    // The pod leaves the cache although it is not deleted.
    std::function<void(const codecs::CachedPod& pod)> on_drop;
  };
  // Call it before the informer starts. `namespaces`: as the informer's.
  PodShards(Dependencies dependencies, int shards, std::vector<std::string> namespaces);
  ~PodShards();

  // All shards that this replica has or will have.
  void want(std::set<int> shards);
  bool read(int shard, const std::string& namespace_) const;
  // True if it is read in each namespace that can be watched.
  bool read(int shard) const;

  // The pods of new shards are being listed, and nothing has failed so far. Meanwhile the replica
  // sees no change of the pods that it had.
  bool lists() const;

  // Of the pods of jobs in these shards, and of pods without a label of a shard.
  static std::string selector(const std::set<int>& selected, int shards);

 private:
  void list_more();
  void widen();
  void narrow();
  void linger();
  void on_progress();

  Dependencies deps_;
  const int shards_;
  struct Watched {
    std::string namespace_;
    std::uint64_t widened = 0;  // Informer::widened(), as last reported
  };
  std::vector<Watched> watched_;
  std::set<int> wanted_;
  std::set<int> selected_;
  std::vector<std::uint64_t> since_;  // by shard: from this widening on; 0: not selected
  std::uint64_t widenings_ = 0;
  SteadyTime widened_at_{};
  TimerId linger_ = 0;
  TimerId again_ = 0;
};

}  // namespace holdfast::jobs
