// How lists and events change a Store. Pure: a store in, a store and its changes out.
//
// An object never goes back: what is older than the stored object of its key is left out, unless
// it stands in a consistent list, which is the truth even where it is older (the server's data was
// set back).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/cache/store.h"
#include "client/kube/object.h"

namespace holdfast::cache {

// An added, modified or deleted object; anything else, and an event without object, changes
// nothing. Changes are appended in the order in which handlers must see them.
void apply_event(Store& store, const kube::WatchEvent& event, std::vector<Change>& changes);

enum class Trust {
  kMayBeOld,    // served from some replica's memory
  kConsistent,  // the truth at its version
  kSetBack,     // the truth, and old versions mean nothing: the same one may name other contents
};

struct Snapshot {
  std::string namespace_;  // the part of the store that it stands for; empty: all of it
  std::vector<ObjectPtr> items;
  Trust trust = Trust::kMayBeOld;
};

// Makes that part of the store equal to the snapshot: deletions (with the last known state) of
// what is not in it, then the rest. Equal versions are no change, but for kSetBack. Linear in store
// and snapshot. Returns how many objects went back.
std::size_t replace(Store& store, Snapshot&& snapshot, std::vector<Change>& changes);

// Where the store holds an object of the same key, UID and version, it takes the place of the other
// copy: a list of what is known already costs no second copy of it.
void share(const Store& store, ObjectPtr& object);

// How many objects differ from a list of metadata in what a watch that has come to `version` may
// not have told yet. What it has passed is not doubted.
std::size_t count_behind(const Store& store, const std::string& namespace_, std::uint64_t version,
                         const kube::ListPage& metadata);

}  // namespace holdfast::cache
