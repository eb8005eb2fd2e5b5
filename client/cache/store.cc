#include "client/cache/store.h"

#include <cassert>
#include <utility>

namespace holdfast::cache {

void Store::add_index(const std::string& index, IndexFunction function) {
  assert(objects_.empty());
  indexes_[index].function = std::move(function);
}

ObjectPtr Store::get(const std::string& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Store::by_index(const std::string& index, const std::string& value) const {
  std::vector<ObjectPtr> objects;
  const auto found = indexes_.find(index);
  if (found == indexes_.end()) return objects;
  const auto keys = found->second.values.find(value);
  if (keys == found->second.values.end()) return objects;
  objects.reserve(keys->second.size());
  for (const std::string& key : keys->second) objects.push_back(objects_.at(key));
  return objects;
}

void Store::for_each(const std::function<void(const ObjectPtr&)>& visit) const {
  for (const auto& [key, object] : objects_) visit(object);
}

ObjectPtr Store::put(ObjectPtr object) {
  const std::string key = object->key();
  ObjectPtr& slot = objects_[key];
  if (slot) index_remove(key, *slot);
  ObjectPtr before = std::exchange(slot, std::move(object));
  index_add(key, *slot);
  return before;
}

ObjectPtr Store::erase(const std::string& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  ObjectPtr before = std::move(found->second);
  objects_.erase(found);
  index_remove(key, *before);
  return before;
}

void Store::index_add(const std::string& key, const kube::Object& object) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(object)) index.values[value].insert(key);
  }
}

void Store::index_remove(const std::string& key, const kube::Object& object) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(object)) {
      const auto keys = index.values.find(value);
      if (keys == index.values.end()) continue;
      keys->second.erase(key);
      if (keys->second.empty()) index.values.erase(keys);
    }
  }
}

}  // namespace holdfast::cache
