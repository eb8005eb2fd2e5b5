// The local copy of all objects of one kind, by key and by indexes. Loop only. Objects are
// immutable and shared, so a reader may keep them for any time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/kube/object.h"

namespace holdfast::cache {

using kube::ObjectPtr;

// Each object has a key and up to a few index values (e.g. the owner's UID).
class Store {
 public:
  using IndexFunction = std::function<std::vector<std::string>(const kube::Object&)>;

  // Only while the store is empty.
  void add_index(const std::string& index, IndexFunction function);

  ObjectPtr get(const std::string& key) const;  // null: unknown
  // In no particular order. Empty for an unknown index or value.
  std::vector<ObjectPtr> by_index(const std::string& index, const std::string& value) const;
  std::size_t size() const { return objects_.size(); }
  // `visit` must not change the store.
  void for_each(const std::function<void(const ObjectPtr&)>& visit) const;

  // Returns the object before (null: none). For reflectors.
  ObjectPtr put(ObjectPtr object);
  ObjectPtr erase(const std::string& key);

 private:
  using Keys = std::unordered_set<std::string>;
  struct Index {
    IndexFunction function;
    std::unordered_map<std::string, Keys> values;
  };
  void index_add(const std::string& key, const kube::Object& object);
  void index_remove(const std::string& key, const kube::Object& object);

  std::unordered_map<std::string, ObjectPtr> objects_;
  std::unordered_map<std::string, Index> indexes_;
};

// `before` is null for an addition, `after` for a deletion. A deletion and a new creation under one
// name (other UID) may arrive as one event. Handlers then see two changes: deletion, addition.
// `initial` marks the objects of a list, first or repeated. They queue behind fresh events.
struct Change {
  ObjectPtr before;
  ObjectPtr after;
  bool initial = false;
};

}  // namespace holdfast::cache
