#include "tests/simulation/server/garbage.h"

#include <algorithm>
#include <chrono>

namespace holdfast::simulation {
namespace {

constexpr const char* kOrphan = "orphan";
constexpr const char* kForeground = "foregroundDeletion";
constexpr std::chrono::hours kEventLife{1};

const Json& metadata_of(const StoredPtr& object) { return at(object->json(), "metadata"); }

bool has_finalizer(const StoredPtr& object, const char* name) {
  const Json& finalizers = at(metadata_of(object), "finalizers");
  return std::find(finalizers.begin(), finalizers.end(), name) != finalizers.end();
}

bool is_deleting(const StoredPtr& object) {
  return metadata_of(object).contains("deletionTimestamp");
}

bool is_deleting_dependents(const StoredPtr& object) {
  return is_deleting(object) && has_finalizer(object, kForeground);
}

Json without_finalizer(const StoredPtr& object, const char* name) {
  Json changed = object->json();
  Json& finalizers = changed["metadata"]["finalizers"];
  finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), name), finalizers.end());
  return changed;
}

// Without the references whose owner `drop` names by uid.
Json without_owners(const StoredPtr& object, const std::set<std::string>& drop) {
  Json changed = object->json();
  Json kept = Json::array();
  for (const Json& owner : changed["metadata"]["ownerReferences"]) {
    if (!drop.count(string_at(owner, "uid"))) kept.push_back(owner);
  }
  changed["metadata"]["ownerReferences"] = std::move(kept);
  return changed;
}

}  // namespace

Garbage::Garbage(Storage& storage, Writer& writer) : storage_(storage), writer_(writer) {
  storage_.observe([this](const Table& table, const Change& change) { note(table, change); });
}

void Garbage::look_at_everything() {
  dependents_.clear();
  queue_.clear();
  terminating_.clear();
  next_expiry_ = Time();
  for (const Table& table : storage_.tables()) {
    for (const auto& [key, object] : table.truth) {
      note(table, Change{object->version(), nullptr, object, nullptr});
    }
  }
}

void Garbage::note_owners(const Place& place, const StoredPtr& object, bool there) {
  for (const Json& owner : at(metadata_of(object), "ownerReferences")) {
    const std::string uid = string_at(owner, "uid");
    if (there) {
      dependents_[uid].insert(place);
      continue;
    }
    const auto found = dependents_.find(uid);
    if (found == dependents_.end()) continue;
    found->second.erase(place);
    if (found->second.empty()) dependents_.erase(found);
    // An owner that waits for its dependents may be free now.
    const Resource* const kind =
        find_kind(string_at(owner, "apiVersion"), string_at(owner, "kind"));
    if (kind != nullptr) {
      const std::string namespace_ = string_at(metadata_of(object), "namespace");
      queue_.insert({kind, key_of(*kind, namespace_, string_at(owner, "name"))});
    }
  }
}

void Garbage::note(const Table& table, const Change& change) {
  const Place place{table.resource, change.key()};
  const bool same_owners = change.before && change.after &&
                           at(metadata_of(change.before), "ownerReferences") ==
                               at(metadata_of(change.after), "ownerReferences");
  if (!same_owners) {
    if (change.before) note_owners(place, change.before, false);
    if (change.after) note_owners(place, change.after, true);
    if (change.after && !at(metadata_of(change.after), "ownerReferences").empty()) {
      queue_.insert(place);
    }
  }
  if (change.after && is_deleting(change.after)) {
    queue_.insert(place);
    if (is(*table.resource, "namespaces")) terminating_.insert(place);
  }
  if (change.after) return;
  terminating_.erase(place);
  const auto found = dependents_.find(string_at(metadata_of(change.gone), "uid"));
  if (found != dependents_.end()) queue_.insert(found->second.begin(), found->second.end());
}

bool Garbage::step() {
  const std::uint64_t before = storage_.version();
  const std::set<Place> work = std::exchange(queue_, {});
  for (const Place& place : work) look_at(place);
  const std::set<Place> terminating = terminating_;
  for (const Place& place : terminating) {
    Table& table = storage_.table(*place.first);
    if (const StoredPtr object = storage_.find(*place.first, place.second)) {
      empty_namespace(table, object);
    }
  }
  expire_events();
  return storage_.version() != before;
}

void Garbage::look_at(const Place& place) {
  const StoredPtr object = storage_.find(*place.first, place.second);
  if (!object) return;
  Table& table = storage_.table(*place.first);
  if (is_deleting(object) && has_finalizer(object, kOrphan)) {
    orphan_dependents(table, object);
  } else if (is_deleting_dependents(object)) {
    delete_dependents(table, object);
  } else if (!is_deleting(object)) {
    collect(table, object);
  }
}

StoredPtr Garbage::owner_of(const Json& reference, const std::string& namespace_) const {
  const Resource* const kind =
      find_kind(string_at(reference, "apiVersion"), string_at(reference, "kind"));
  if (kind == nullptr) return nullptr;
  const StoredPtr owner =
      storage_.find(*kind, key_of(*kind, namespace_, string_at(reference, "name")));
  if (!owner || metadata_of(owner)["uid"] != at(reference, "uid")) return nullptr;
  return owner;
}

// As the garbage collector sorts owners: solid ones keep the object, absent ones do not count, and
// those that wait for their dependents take it with them.
void Garbage::collect(Table& table, const StoredPtr& object) {
  const Json& metadata = metadata_of(object);
  const std::string namespace_ = string_at(metadata, "namespace");
  bool kept = false;
  bool waited_for = false;
  std::set<std::string> drop;
  const Json& owners = at(metadata, "ownerReferences");
  if (owners.empty()) return;
  for (const Json& reference : owners) {
    // Kinds that nobody serves are left alone.
    if (!find_kind(string_at(reference, "apiVersion"), string_at(reference, "kind"))) return;
    const StoredPtr owner = owner_of(reference, namespace_);
    const bool blocks = bool_at(reference, "blockOwnerDeletion");
    if (owner && !(is_deleting_dependents(owner) && blocks)) {
      kept = true;
      continue;
    }
    waited_for = waited_for || owner;
    drop.insert(string_at(reference, "uid"));
  }
  if (kept) {
    if (!drop.empty()) writer_.rewrite(table, object, without_owners(object, drop));
    return;
  }
  DeleteOptions options;
  options.uid = string_at(metadata, "uid");
  options.propagation = has_finalizer(object, kOrphan)       ? "Orphan"
                        : has_finalizer(object, kForeground) ? "Foreground"
                                                             : "Background";
  if (waited_for && dependents_.count(*options.uid)) options.propagation = "Foreground";
  writer_.remove(table, object, options);
}

void Garbage::orphan_dependents(Table& table, const StoredPtr& owner) {
  const std::string uid = string_at(metadata_of(owner), "uid");
  const auto found = dependents_.find(uid);
  const std::set<Place> places = found == dependents_.end() ? std::set<Place>() : found->second;
  for (const Place& place : places) {
    if (const StoredPtr dependent = storage_.find(*place.first, place.second)) {
      writer_.rewrite(storage_.table(*place.first), dependent, without_owners(dependent, {uid}));
    }
  }
  const StoredPtr current = storage_.find(*table.resource, owner->key());
  if (current) writer_.rewrite(table, current, without_finalizer(current, kOrphan));
}

void Garbage::delete_dependents(Table& table, const StoredPtr& owner) {
  const std::string uid = string_at(metadata_of(owner), "uid");
  const auto found = dependents_.find(uid);
  const std::set<Place> places = found == dependents_.end() ? std::set<Place>() : found->second;
  bool blocked = false;
  for (const Place& place : places) {
    const StoredPtr dependent = storage_.find(*place.first, place.second);
    if (!dependent) continue;
    if (!is_deleting(dependent)) collect(storage_.table(*place.first), dependent);
    if (!storage_.find(*place.first, place.second)) continue;
    for (const Json& reference : at(metadata_of(dependent), "ownerReferences")) {
      blocked =
          blocked || (at(reference, "uid") == uid && bool_at(reference, "blockOwnerDeletion"));
    }
  }
  if (blocked) return;
  const StoredPtr current = storage_.find(*table.resource, owner->key());
  if (current) writer_.rewrite(table, current, without_finalizer(current, kForeground));
}

bool Garbage::empty_table(Table& content, const std::string& namespace_) {
  const std::string prefix = namespace_ + "/";
  std::vector<StoredPtr> inside;
  for (auto place = content.truth.lower_bound(prefix);
       place != content.truth.end() && place->first.compare(0, prefix.size(), prefix) == 0;
       ++place) {
    inside.push_back(place->second);
  }
  bool empty = true;
  for (const StoredPtr& one : inside) {
    if (!is_deleting(one)) writer_.remove(content, one, {.propagation = "Background"});
    empty = empty && !storage_.find(*content.resource, one->key());
  }
  return empty;
}

// Pods first: nothing else goes before the last of them has gone.
void Garbage::empty_namespace(Table& table, const StoredPtr& object) {
  if (!empty_table(*storage_.table("pods"), object->key())) return;
  bool empty = true;
  for (Table& content : storage_.tables()) {
    if (content.resource->namespaced) empty = empty_table(content, object->key()) && empty;
  }
  if (empty) storage_.remove(table, object->key());
}

void Garbage::expire_events() {
  const Time now = writer_.now();
  if (now < next_expiry_) return;
  next_expiry_ = now + kEventLife;
  Table& events = storage_.table(*find_resource("events.k8s.io", "v1", "events"));
  std::vector<std::string> old;
  for (const auto& [key, event] : events.truth) {
    const auto created = parse_time(string_at(metadata_of(event), "creationTimestamp"));
    if (!created) continue;
    const Time expiry = *created + kEventLife;
    if (expiry < now) {
      old.push_back(key);
    } else {
      next_expiry_ = std::min<Time>(next_expiry_, expiry);
    }
  }
  for (const std::string& key : old) storage_.remove(events, key);
}

}  // namespace holdfast::simulation
