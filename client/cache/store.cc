#include "client/cache/store.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "client/kube/packed.h"
#include "core/invariant.h"

namespace holdfast::cache {
namespace {

std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }

}  // namespace

// No name has a slash.
Store::Key::Key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash != std::string_view::npos) namespace_ = key.substr(0, slash);
  name = slash == std::string_view::npos ? key : key.substr(slash + 1);
}

std::size_t Store::KeyHash::operator()(const Key& key) const {
  constexpr std::size_t kOdd = 0x9E3779B97F4A7C15U;
  return hash_of(key.namespace_) * kOdd + hash_of(key.name);
}

bool Store::EntryOrder::operator()(const Entry& a, const Entry& b) const {
  const auto order = [](const Entry& entry) {
    return std::tie(entry.hash, entry.object->name, entry.object->namespace_);
  };
  return order(a) < order(b);
}

void Store::add_index(const std::string& index, IndexFunction function) {
  assert(objects_.empty());
  indexes_[index].function = std::move(function);
}

ObjectPtr Store::get(const std::string& key) const { return kube::whole(stored(key)); }

ObjectPtr Store::stored(const std::string& key) const {
  const auto found = objects_.find(Key(key));
  return found == objects_.end() ? nullptr : *found;
}

std::vector<ObjectPtr> Store::by_index(const std::string& index, const std::string& value) const {
  std::vector<ObjectPtr> objects;
  const auto found = indexes_.find(index);
  if (found == indexes_.end()) return objects;
  const auto [first, last] = found->second.entries.equal_range(hash_of(value));
  for (auto entry = first; entry != last; ++entry) {
    ObjectPtr object = kube::whole(entry->object);
    const std::vector<std::string> values = found->second.function(*object);
    if (std::find(values.begin(), values.end(), value) == values.end()) continue;
    objects.push_back(std::move(object));
  }
  return objects;
}

void Store::for_each(const std::function<void(const ObjectPtr&)>& visit) const {
  for (const ObjectPtr& object : objects_) visit(kube::whole(object));
}

void Store::for_each_stored(const std::function<void(const ObjectPtr&)>& visit) const {
  for (const ObjectPtr& object : objects_) visit(object);
}

ObjectPtr Store::put(ObjectPtr object) {
  ObjectPtr before = erase(object->key());
  index_add(object);
  const bool is_new = objects_.insert(std::move(object)).second;
  invariant(is_new, "a cache has one object of each key");
  return before;
}

ObjectPtr Store::erase(const std::string& key) {
  const auto found = objects_.find(Key(key));
  if (found == objects_.end()) return nullptr;
  ObjectPtr before = *found;
  objects_.erase(found);
  index_remove(before);
  return before;
}

void Store::index_add(const ObjectPtr& object) {
  if (indexes_.empty()) return;
  const ObjectPtr whole = kube::whole(object);
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(*whole)) {
      index.entries.insert({hash_of(value), object});
    }
  }
}

void Store::index_remove(const ObjectPtr& object) {
  if (indexes_.empty()) return;
  const ObjectPtr whole = kube::whole(object);
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(*whole)) {
      index.entries.erase({hash_of(value), object});
    }
    invariant(!objects_.empty() || index.entries.empty(), "an empty cache has empty indexes");
  }
}

}  // namespace holdfast::cache
