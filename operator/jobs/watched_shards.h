// Which jobs, pods and heartbeat Leases a replica watches: those of the shards that it has, or will
// have soon. It also watches all that name no shard of this installation: an older version's, and new
// jobs. So the work of other replicas costs it little.
//
//   want({7, 12})    Both are listed, together with what was watched before.
//   read(7, ns)      From now on the caches are as complete for shard 7 as any watched cache.
//   want({7})        After kLinger what belongs to 12 leaves the caches. After a lapse a replica
//                    mostly gets its shards back, and then needs no list.
//
// While a shard is held but not read, the operator does nothing about its jobs. An object may be
// missing in the cache or in the cluster, and the operator cannot know which. Membership records
// nothing.
//
// Loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/kube/object.h"
#include "core/loop.h"

namespace holdfast::jobs {

class WatchedShards {
 public:
  static constexpr std::chrono::seconds kLinger{60};
  // How long a list may hold up the next one, once another namespace's has come.
  static constexpr std::chrono::seconds kPatience{5};

  struct Part {
    cache::Informer& informer;
    // See shard_selectors.h.
    std::function<cache::Selector(const std::set<int>& selected, int shards)> selector;
    // The shard that an object names, as reconciler::shard_label().
    std::function<std::string(const kube::ObjectPtr& object)> label;
    std::function<void(const kube::ObjectPtr& object)> on_drop;
  };
  // Of T, as the informer decodes it. `label`: of a T. `on_drop`: a T leaves the cache although it is
  // not deleted.
  template <class T, class Selector, class Label, class OnDrop>
  static Part part(cache::Informer& informer, Selector selector, Label label, OnDrop on_drop) {
    return {informer, selector,
            [label](const kube::ObjectPtr& object) { return label(*kube::as<T>(object)); },
            [on_drop](const kube::ObjectPtr& object) { on_drop(*kube::as<T>(object)); }};
  }
  struct Dependencies {
    Loop& loop;
    std::vector<Part> parts;
    // What belongs to these shards in this watched namespace is in all caches by now; "": in all
    // namespaces.
    std::function<void(const std::set<int>& shards, const std::string& watched)> on_read;
  };
  // Call it before the informers start. `namespaces`: as the informers'.
  WatchedShards(Dependencies dependencies, int shards, std::vector<std::string> namespaces);
  ~WatchedShards();

  // All shards that this replica has or will have.
  void want(std::set<int> shards);
  bool read(int shard, const std::string& namespace_) const;
  // True if it is read in each namespace that can be watched.
  bool read(int shard) const;
  // How many are, whether or not they are held.
  std::size_t read_shards() const;

  // What belongs to new shards is being listed, and nothing has failed so far. Meanwhile the replica
  // sees no change of what it had.
  bool lists() const;
  bool watches(const cache::Informer& informer) const;

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
    std::uint64_t widened = 0;  // of all parts, as last reported
  };
  std::uint64_t widened(const std::string& namespace_) const;
  bool lists(const std::string& namespace_) const;
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
