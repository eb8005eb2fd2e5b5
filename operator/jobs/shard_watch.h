// Which objects of one kind a replica watches: those of the shards that it has, or will have soon.
// It also watches all that name no shard of this installation (an older version's, or new ones). So
// the work of other replicas costs it little.
//
//   want({7, 12})    Both are listed, together with what was watched before.
//   read(7, ns)      From now on the cache is as complete for shard 7 as any watched cache.
//   want({7})        After kLinger the objects of 12 leave the cache. After a lapse a replica mostly
//                    gets its shards back, and then needs no list.
//
// Loop only. WatchedShards has one for each kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "core/loop.h"

namespace holdfast::jobs {

class ShardWatch {
 public:
  static constexpr std::chrono::seconds kLinger{60};
  // How long a list may hold up the next one, once another namespace's has come.
  static constexpr std::chrono::seconds kPatience{5};

  struct Dependencies {
    Loop& loop;
    cache::Informer& objects;
    // Of the objects of these shards, and of those that name none.
    std::function<cache::Selector(const std::set<int>& selected)> selector;
    // That it names; none: it names none of this installation.
    std::function<std::optional<int>(const kube::ObjectPtr& object)> shard_of;
    // The objects of these shards in this watched namespace are in the cache by now; "": in all.
    std::function<void(const std::set<int>& shards, const std::string& watched)> on_read;
    // The object has left the cache although it is not deleted. Null: the handlers of the cache are
    // told as if it were.
    std::function<void(const kube::ObjectPtr& object)> on_drop;
  };
  // Call it before the informer starts. `namespaces`: as the informer's.
  ShardWatch(Dependencies dependencies, int shards, std::vector<std::string> namespaces);
  ~ShardWatch();

  // All shards that this replica has or will have.
  void want(std::set<int> shards);
  bool read(int shard, const std::string& namespace_) const;
  // True if it is read in each namespace that can be watched.
  bool read(int shard) const;

  // The objects of new shards are being listed, and nothing has failed so far. Meanwhile the replica
  // sees no change of the objects that it had.
  bool lists() const;
  const cache::Informer& objects() const { return deps_.objects; }

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
