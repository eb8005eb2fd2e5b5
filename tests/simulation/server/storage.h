// What etcd and the watch cache hold: every object by resource and key, the history of changes, and
// the cache's view, which follows the truth only when it is told to.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/server/resources.h"

namespace holdfast::simulation {

// One version of one object. Immutable, so that truth, cache, history and snapshots share it.
class Stored {
 public:
  Stored(std::string key, std::uint64_t version, Json json);
  const std::string& key() const { return key_; }  // "namespace/name", or "name"
  std::uint64_t version() const { return version_; }
  const Json& json() const { return json_; }
  const std::string& text() const;  // made once

 private:
  std::string key_;
  std::uint64_t version_;
  Json json_;
  mutable std::string text_;
};
using StoredPtr = std::shared_ptr<const Stored>;
using Objects = std::map<std::string, StoredPtr>;  // by key, in etcd's order

struct Change {
  std::uint64_t version = 0;
  StoredPtr before;  // null: created
  StoredPtr after;   // null: removed
  StoredPtr gone;    // removed: its last state, at the version of its removal, as watches show it
  const std::string& key() const { return (after ? after : gone)->key(); }
};

struct Table {
  const Resource* resource = nullptr;
  Objects truth;
  Objects cached;
  std::deque<Change> log;  // since the last compaction
  std::size_t served = 0;  // how many of the log's changes the watch cache has seen
};

class Storage {
 public:
  using Observer = std::function<void(const Table&, const Change&)>;

  Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::uint64_t version() const { return version_; }
  std::uint64_t cache_version() const { return cache_version_; }
  std::uint64_t compacted() const { return compacted_; }
  // Below it a watch cannot start: the watch cache has forgotten, or never knew.
  std::uint64_t watchable_from() const { return watchable_from_; }

  Table& table(const Resource& resource);
  const Table& table(const Resource& resource) const;
  Table* table(const std::string& plural);
  std::vector<Table>& tables() { return tables_; }
  StoredPtr find(const Resource& resource, const std::string& key) const;

  // The next version is written into the object.
  StoredPtr put(Table& table, const std::string& key, Json object);
  // The last state, at the removal's version.
  StoredPtr remove(Table& table, const std::string& key);
  void observe(Observer observer) { observers_.push_back(std::move(observer)); }

  // Moves the cache of all tables on. `seen` is told each change, table by table.
  void advance_cache(std::uint64_t to, const Observer& seen);
  // The objects as they stood at `version`, which is neither compacted nor in the future.
  Objects at_version(const Table& table, std::uint64_t version) const;
  void compact();
  // As after a restart of the API server: the cache is the truth, and knows nothing older.
  void reset_cache();

  std::string snapshot() const;
  void restore(const std::string& snapshot);

 private:
  void tell(const Table& table, const Change& change);

  std::vector<Table> tables_;
  std::vector<Observer> observers_;
  std::uint64_t version_ = 1;
  std::uint64_t cache_version_ = 1;
  std::uint64_t compacted_ = 1;
  std::uint64_t watchable_from_ = 1;
};

std::string key_of(const Resource& resource, const std::string& namespace_,
                   const std::string& name);

}  // namespace holdfast::simulation
