// The garbage collector and the namespace controller: remove objects after their owner or
// namespace. They note possible work at each write, so that a step without work costs nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/simulation/server/storage.h"
#include "tests/simulation/server/writer.h"

namespace holdfast::simulation {

class Garbage {
 public:
  Garbage(Storage& storage, Writer& writer);

  // True: it wrote something.
  bool step();
  // After a restore: checks everything again.
  void look_at_everything();

 private:
  using Place = std::pair<const Resource*, std::string>;  // resource and key

  void note(const Table& table, const Change& change);
  void note_owners(const Place& place, const StoredPtr& object, bool there);
  void look_at(const Place& place);
  void collect(Table& table, const StoredPtr& object);
  void orphan_dependents(Table& table, const StoredPtr& owner);
  void delete_dependents(Table& table, const StoredPtr& owner);
  void empty_namespace(Table& table, const StoredPtr& object);
  // Deletes the namespace's objects. True once none is left.
  bool empty_table(Table& content, const std::string& namespace_);
  StoredPtr owner_of(const Json& reference, const std::string& namespace_) const;
  void expire_events();

  Storage& storage_;
  Writer& writer_;
  std::map<std::string, std::set<Place>> dependents_;  // by the owner's uid
  std::set<Place> queue_;
  std::set<Place> terminating_;  // namespaces
  Time next_expiry_{};           // no Event expires before it
};

}  // namespace holdfast::simulation
