// The series of metrics about what users name: namespaces, queues and pools. Their number has no
// bound, and each costs some twenty to seventy lines at each scrape. So at most kSeriesShown names
// of a group have series of their own. All other names of the group share those of "(others)". A
// new name takes the place of a name that is no longer used. Loop only.
//
//   table.mark([&](const auto& key) { return exists(key); });   // at a scrape
//   table.of(namespace_, queue).running->Set(1);                // from now on it is used
//   table.remove_unused();                                      // or leave them until a place is
//   needed
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace holdfast::runtime {

inline constexpr std::size_t kSeriesShown = 100;
inline constexpr const char* kOthers = "(others)";

template <class Series>
class SeriesTable {
 public:
  using Key = std::pair<std::string, std::string>;  // the group, and the name as the label has it

  // `create` registers the series of a key, and `remove` unregisters them.
  SeriesTable(std::function<Series(const Key&)> create, std::function<void(const Series&)> remove)
      : create_(std::move(create)), remove_(std::move(remove)) {}

  // The label under which the name is shown. Creates its series if they are missing.
  const Key& shown(const std::string& group, const std::string& name) {
    auto found = entries_.find({group, name});
    if (found == entries_.end()) {
      Key key(group, has_room(group) ? name : kOthers);
      found = entries_.find(key);
      if (found == entries_.end()) found = entries_.emplace(key, Entry{create_(key)}).first;
    }
    found->second.is_used = true;
    return found->first;
  }
  Series& of(const std::string& group, const std::string& name) { return at(shown(group, name)); }
  Series& at(const Key& key) { return entries_.at(key).series; }

  // Names that do not exist any more are not used until shown() asks for them.
  void mark(const std::function<bool(const Key&)>& exists) {
    for (auto& [key, entry] : entries_) entry.is_used = exists(key);
  }
  void remove_unused() {
    std::erase_if(entries_, [&](const auto& one) {
      if (!one.second.is_used) remove_(one.second.series);
      return !one.second.is_used;
    });
  }
  void for_each(const std::function<void(Series&)>& apply) {
    for (auto& [key, entry] : entries_) apply(entry.series);
  }

 private:
  struct Entry {
    Series series;
    bool is_used = true;
  };

  // For one more name. May remove an unused one.
  bool has_room(const std::string& group) {
    std::size_t own = 0;
    auto unused = entries_.end();
    for (auto one = entries_.lower_bound({group, ""});
         one != entries_.end() && one->first.first == group; ++one) {
      if (one->first.second == kOthers) continue;
      ++own;
      if (!one->second.is_used) unused = one;
    }
    if (own < kSeriesShown) return true;
    if (unused == entries_.end()) return false;
    remove_(unused->second.series);
    entries_.erase(unused);
    return true;
  }

  const std::function<Series(const Key&)> create_;
  const std::function<void(const Series&)> remove_;
  std::map<Key, Entry> entries_;
};

}  // namespace holdfast::runtime
