// A map of at most `capacity` entries. It evicts the least recently used entry. Not thread-safe.
#pragma once

#include <cassert>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace holdfast::events {

template <class Value>
class LruMap {
 public:
  explicit LruMap(std::size_t capacity) : capacity_(capacity) { assert(capacity > 0); }

  using Entry = std::pair<std::string, Value>;

  // The key's value. Inserts `fallback` if the key is missing. Valid until the next call.
  // `evicted`: gets the entry that made room for it, if one did.
  Value& get(const std::string& key, const Value& fallback,
             std::optional<Entry>* evicted = nullptr) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->second;
    }
    if (entries_.size() == capacity_) {
      index_.erase(entries_.back().first);
      if (evicted) *evicted = std::move(entries_.back());
      entries_.pop_back();
    }
    entries_.emplace_front(key, fallback);
    index_.emplace(key, entries_.begin());
    return entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<Entry>;

  const std::size_t capacity_;
  Entries entries_;  // latest first
  std::unordered_map<std::string, typename Entries::iterator> index_;
};

}  // namespace holdfast::events
