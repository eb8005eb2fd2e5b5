// The local copy of all objects of one kind, by key and by indexes. Loop only. Objects are
// immutable and shared, so a reader may keep them for any time.
//
// A store may hold a million objects. So it keeps no copy of their keys, and objects at rest stay
// packed (client/kube/packed.h). Readers get whole objects. Code that only compares versions takes
// objects as they are stored: stored(), for_each_stored(), put(), erase().
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
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

  ObjectPtr stored(const std::string& key) const;
  void for_each_stored(const std::function<void(const ObjectPtr&)>& visit) const;
  // Returns the object before (null: none). For reflectors.
  ObjectPtr put(ObjectPtr object);
  ObjectPtr erase(const std::string& key);

 private:
  // "<namespace>/<name>", or a name alone.
  struct Key {
    explicit Key(std::string_view key);
    explicit Key(const kube::Object& object) : namespace_(object.namespace_), name(object.name) {}
    std::string_view namespace_;
    std::string_view name;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const ObjectPtr& object) const { return (*this)(Key(*object)); }
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const ObjectPtr& a, const ObjectPtr& b) const { return Key(*a) == Key(*b); }
    bool operator()(const Key& a, const ObjectPtr& b) const { return a == Key(*b); }
    bool operator()(const ObjectPtr& a, const Key& b) const { return Key(*a) == b; }
  };
  // An object under the hash of one of its values.
  struct Entry {
    std::size_t hash;
    ObjectPtr object;
  };
  // By hash, then by key. A lookup has the hash alone.
  struct EntryOrder {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const;
    bool operator()(const Entry& a, std::size_t hash) const { return a.hash < hash; }
    bool operator()(std::size_t hash, const Entry& b) const { return hash < b.hash; }
  };
  struct Index {
    IndexFunction function;
    std::set<Entry, EntryOrder> entries;
  };
  void index_add(const ObjectPtr& object);
  void index_remove(const ObjectPtr& object);

  std::unordered_set<ObjectPtr, KeyHash, KeyEqual> objects_;
  std::unordered_map<std::string, Index> indexes_;
};

// `before` is null for an addition, `after` for a deletion. A deletion and a new creation under one
// name (other UID) may arrive as one event. Handlers then see two changes: deletion, addition.
// `initial` marks the objects of a list, first or repeated. They queue behind fresh events. The
// objects are as they are stored; an informer's handlers get them whole.
struct Change {
  ObjectPtr before;
  ObjectPtr after;
  bool initial = false;
};

}  // namespace holdfast::cache
