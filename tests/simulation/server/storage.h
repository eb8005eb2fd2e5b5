// The content of etcd and the watch cache: every object by resource and key, the history of
// changes, and the cache's view. The view advances only on request.
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

// One version of one object. Immutable, so that the data, cache, history and snapshots share it.
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
  StoredPtr gone;    // removed: its last state with the removal's version, as watches show it
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
  // No watch can start below it: the watch cache has forgotten, or never had, older changes.
  std::uint64_t watchable_from() const { return watchable_from_; }

  Table& table(const Resource& resource);
  const Table& table(const Resource& resource) const;
  Table* table(const std::string& plural);
  std::vector<Table>& tables() { return tables_; }
  StoredPtr find(const Resource& resource, const std::string& key) const;

  // Writes the next version into the object.
  StoredPtr put(Table& table, const std::string& key, Json object);
  // Returns the last state, with the removal's version.
  StoredPtr remove(Table& table, const std::string& key);
  void observe(Observer observer) { observers_.push_back(std::move(observer)); }

  // Advances the cache of all tables. Calls `seen` for each change, table by table.
  void advance_cache(std::uint64_t to, const Observer& seen);
  // The objects at `version`, which must not be compacted or in the future.
  Objects at_version(const Table& table, std::uint64_t version) const;
  void compact();
  // As after a restart of the API server: the cache equals the stored data and knows nothing older.
  void reset_cache();

  std::string snapshot() const;
  void restore(const std::string& snapshot);

 private:
  void notify(const Table& table, const Change& change);

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
