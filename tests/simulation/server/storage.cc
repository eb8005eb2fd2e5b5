#include "tests/simulation/server/storage.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace holdfast::simulation {

Stored::Stored(std::string key, std::uint64_t version, Json json)
    : key_(std::move(key)), version_(version), json_(std::move(json)) {}

const std::string& Stored::text() const {
  if (text_.empty()) text_ = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text_;
}

std::string key_of(const Resource& resource, const std::string& namespace_,
                   const std::string& name) {
  return resource.namespaced ? namespace_ + "/" + name : name;
}

Storage::Storage() {
  for (const Resource& resource : kResources) {
    Table table;
    table.resource = &resource;
    tables_.push_back(std::move(table));
  }
}

Table& Storage::table(const Resource& resource) {
  return tables_[static_cast<std::size_t>(&resource - kResources)];
}

const Table& Storage::table(const Resource& resource) const {
  return tables_[static_cast<std::size_t>(&resource - kResources)];
}

Table* Storage::table(const std::string& plural) {
  for (Table& table : tables_) {
    if (plural == table.resource->plural) return &table;
  }
  return nullptr;
}

StoredPtr Storage::find(const Resource& resource, const std::string& key) const {
  const Objects& truth = table(resource).truth;
  const auto found = truth.find(key);
  return found == truth.end() ? nullptr : found->second;
}

StoredPtr Storage::put(Table& table, const std::string& key, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  StoredPtr& place = table.truth[key];
  Change change{version_, place, std::make_shared<Stored>(key, version_, std::move(object)),
                nullptr};
  place = change.after;
  table.log.push_back(change);
  notify(table, change);
  return change.after;
}

StoredPtr Storage::remove(Table& table, const std::string& key) {
  const auto found = table.truth.find(key);
  assert(found != table.truth.end());
  const StoredPtr before = found->second;
  table.truth.erase(found);
  Json last = before->json();
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  const Change change{version_, before, nullptr,
                      std::make_shared<Stored>(key, version_, std::move(last))};
  table.log.push_back(change);
  notify(table, change);
  return change.gone;
}

void Storage::notify(const Table& table, const Change& change) {
  for (const Observer& observer : observers_) observer(table, change);
}

void Storage::advance_cache(std::uint64_t to, const Observer& seen) {
  to = std::min(to, version_);
  if (to <= cache_version_) return;
  cache_version_ = to;
  for (Table& table : tables_) {
    while (table.served < table.log.size() && table.log[table.served].version <= to) {
      const Change change = table.log[table.served++];
      if (change.after) {
        table.cached[change.key()] = change.after;
      } else {
        table.cached.erase(change.key());
      }
      seen(table, change);
    }
  }
}

Objects Storage::at_version(const Table& table, std::uint64_t version) const {
  Objects objects = table.truth;
  for (auto change = table.log.rbegin(); change != table.log.rend(); ++change) {
    if (change->version <= version) break;
    if (change->before) {
      objects[change->key()] = change->before;
    } else {
      objects.erase(change->key());
    }
  }
  return objects;
}

void Storage::compact() {
  reset_cache();
  compacted_ = version_;
  for (Table& table : tables_) {
    table.log.clear();
    table.served = 0;
  }
}

void Storage::reset_cache() {
  cache_version_ = version_;
  watchable_from_ = version_;
  for (Table& table : tables_) {
    table.cached = table.truth;
    table.served = table.log.size();
  }
}

std::string Storage::snapshot() const {
  Json all = {{"version", version_}, {"tables", Json::object()}};
  for (const Table& table : tables_) {
    Json& objects = all["tables"][table.resource->plural] = Json::object();
    for (const auto& [key, stored] : table.truth) objects[key] = stored->json();
  }
  return all.dump();
}

void Storage::restore(const std::string& snapshot) {
  const Json all = Json::parse(snapshot);
  version_ = all.at("version").get<std::uint64_t>();
  for (Table& table : tables_) {
    table.truth.clear();
    for (const auto& [key, object] : all.at("tables").at(table.resource->plural).items()) {
      const std::string text = object.at("metadata").at("resourceVersion").get<std::string>();
      table.truth[key] = std::make_shared<Stored>(key, std::stoull(text), object);
    }
  }
  compact();
}

}  // namespace holdfast::simulation
