// The local copy of all objects of one kind, by key and by indexes. Loop only; objects are
// immutable and shared, so readers keep what they got for as long as they like.
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

// The objects by key, and by up to a few index values each (e.g. the owner's UID).
class Store {
 public:
  using IndexFunction = std::function<std::vector<std::string>(const kube::Object&)>;

  // An index may be added while the store is empty only.
  void add_index(const std::string& index, IndexFunction function);

  ObjectPtr get(const std::string& key) const;  // null: unknown
  // In no particular order; an unknown index or value has none.
  std::vector<ObjectPtr> by_index(const std::string& index, const std::string& value) const;
  std::size_t size() const { return objects_.size(); }
  // The store may not be changed from inside `visit`.
  void for_each(const std::function<void(const ObjectPtr&)>& visit) const;

  // Returns what stood there before (null: nothing). For reflectors.
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

// Before and after; one of them null for an addition or a deletion. A deletion and re-creation
// under one name that arrives as one change (other UID) is reported as two: deletion, addition.
// `initial` marks the objects of a list (first or repeated), which queue behind fresh events.
struct Change {
  ObjectPtr before;
  ObjectPtr after;
  bool initial = false;
};

}  // namespace holdfast::cache
