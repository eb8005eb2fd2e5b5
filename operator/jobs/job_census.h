// What metrics ask of all jobs at once, kept as the cache changes: a scrape must neither walk tens
// of thousands of jobs nor hold up the decisions meanwhile. One thread's, the loop's.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "core/time.h"
#include "reconciler/types.h"

namespace holdfast::controller {

class JobCensus {
 public:
  using Held = std::function<bool(int shard)>;

  // The job as it is now.
  void put(const std::string& uid, int shard, const reconciler::Status& status);
  void erase(const std::string& uid);

  // Of the jobs in shards that are held. By a phase's name; those without one have "".
  std::map<std::string, std::size_t> by_phase(const Held& held) const;
  // The earliest `waiting.deadline`.
  std::optional<Time> first_deadline(const Held& held) const;

 private:
  struct Entry {
    int shard = 0;
    reconciler::Phase phase = reconciler::Phase::kNone;
    std::optional<Time> deadline;
  };
  struct Shard {
    std::map<reconciler::Phase, std::size_t> phases;
    std::multiset<Time> deadlines;
  };

  void take_out(const Entry& entry);

  std::unordered_map<std::string, Entry> entries_;  // by UID
  std::map<int, Shard> shards_;
};

}  // namespace holdfast::controller
