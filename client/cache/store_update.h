// How lists and events change a Store. Pure.
//
// An object never goes back: an older version than the stored one is ignored. The exception is a
// consistent list. It is the truth even if it is older, because the server's data was set back.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "client/cache/store.h"
#include "client/kube/object.h"

namespace holdfast::cache {

// Other events, and events without an object, change nothing. Changes are appended in the order in
// which handlers must see them.
void apply_event(Store& store, const kube::WatchEvent& event, std::vector<Change>& changes);

enum class Trust {
  kMayBeOld,    // served from some replica's memory
  kConsistent,  // the truth at its version
  kSetBack,     // the truth; an old version may now have other contents
};

struct Snapshot {
  std::string namespace_;  // the part of the store that it replaces; empty: all of it
  std::vector<ObjectPtr> items;
  Trust trust = Trust::kMayBeOld;
};

// Makes that part of the store equal to the snapshot: first deletions (with the last known state),
// then the rest. An equal version is no change, except for kSetBack. Linear in store and snapshot.
// Returns how many objects went back.
// `stays`: what the store has from then on of an object that the snapshot lacks; null: nothing.
using Stays = std::function<ObjectPtr(const ObjectPtr& stored)>;
std::size_t replace(Store& store, Snapshot&& snapshot, std::vector<Change>& changes,
                    const Stays& stays = nullptr);

// If the store holds an object of the same key, UID and version, `object` becomes that object. So a
// list of known objects needs no second copy of them.
void share(const Store& store, ObjectPtr& object);

// How many objects in the store lag behind a list of metadata. Only changes after `version` count:
// the watch has reported everything up to it. `kept`: keys of objects that no list has.
std::size_t count_behind(const Store& store, const std::string& namespace_, std::uint64_t version,
                         const kube::ListPage& metadata,
                         const std::unordered_set<std::string>& kept = {});

}  // namespace holdfast::cache
