#include "client/cache/store_update.h"

#include <unordered_set>
#include <utility>

namespace holdfast::cache {
namespace {

void put(Store& store, ObjectPtr object, bool initial, std::vector<Change>& changes) {
  ObjectPtr before = store.put(object);
  if (before && before->uid != object->uid) {
    changes.push_back({std::move(before), nullptr, initial});
    before = nullptr;
  }
  changes.push_back({std::move(before), std::move(object), initial});
}

}  // namespace

void apply_event(Store& store, const kube::WatchEvent& event, std::vector<Change>& changes) {
  if (!event.object) return;
  const ObjectPtr known = store.stored(event.object->key());
  switch (event.type) {
    case kube::WatchEventType::kAdded:
    case kube::WatchEventType::kModified:
      // Versions of one server are comparable across UIDs too. So this also ignores late events of
      // an old object whose name a new object already has.
      if (known && event.object->version <= known->version) return;
      put(store, event.object, /*initial=*/false, changes);
      return;
    case kube::WatchEventType::kDeleted:
      if (!known || known->uid != event.object->uid) return;
      if (event.object->version < known->version) return;
      // The event's object is the last state, which may be newer than the stored one.
      store.erase(known->key());
      changes.push_back({event.object, nullptr, false});
      return;
    case kube::WatchEventType::kBookmark:
    case kube::WatchEventType::kError:
      return;
  }
}

void share(const Store& store, ObjectPtr& object) {
  if (!object) return;
  ObjectPtr known = store.stored(object->key());
  if (known && known->uid == object->uid && known->version == object->version) {
    object = std::move(known);
  }
}

std::size_t count_behind(const Store& store, const std::string& namespace_, std::uint64_t version,
                         const kube::ListPage& metadata,
                         const std::unordered_set<std::string>& kept) {
  if (version >= metadata.version) return 0;
  std::size_t behind = 0;
  std::unordered_set<std::string> present;
  present.reserve(metadata.items.size());
  for (const ObjectPtr& item : metadata.items) {
    std::string key = item->key();
    const ObjectPtr known = store.stored(key);
    if (item->version > version && (!known || known->version < item->version)) ++behind;
    present.insert(std::move(key));
  }
  store.for_each_stored([&](const ObjectPtr& object) {
    if (!namespace_.empty() && object->namespace_ != namespace_) return;
    if (object->version > metadata.version || present.contains(object->key())) return;
    if (!kept.contains(object->key())) ++behind;
  });
  return behind;
}

std::size_t replace(Store& store, Snapshot&& snapshot, std::vector<Change>& changes,
                    const Stays& stays) {
  std::unordered_set<std::string> present;
  present.reserve(snapshot.items.size());
  for (const ObjectPtr& item : snapshot.items) present.insert(item->key());

  std::vector<std::string> vanished;
  store.for_each_stored([&](const ObjectPtr& object) {
    if (!snapshot.namespace_.empty() && object->namespace_ != snapshot.namespace_) return;
    std::string key = object->key();
    if (!present.contains(key)) vanished.push_back(std::move(key));
  });
  for (const std::string& key : vanished) {
    const ObjectPtr stored = store.stored(key);
    ObjectPtr stay = stays ? stays(stored) : nullptr;
    if (!stay) {
      changes.push_back({store.erase(key), nullptr, /*initial=*/true});
    } else if (stay != stored) {
      put(store, std::move(stay), /*initial=*/true, changes);
    }
  }

  std::size_t went_back = 0;
  for (ObjectPtr& item : snapshot.items) {
    if (const ObjectPtr known = store.stored(item->key())) {
      const bool same = known->uid == item->uid && known->version == item->version;
      if (same && snapshot.trust != Trust::kSetBack) continue;
      if (item->version < known->version) {
        if (snapshot.trust == Trust::kMayBeOld) continue;
        ++went_back;
      }
    }
    put(store, std::move(item), /*initial=*/true, changes);
  }
  return went_back;
}

}  // namespace holdfast::cache
