// Totals over all jobs, for metrics. They are updated when the cache changes, because a scrape must
// not walk tens of thousands of jobs and delay decisions. Loop only.
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
  void put(const std::string& uid, int shard, const std::string& namespace_,
           const reconciler::Status& status);
  void erase(const std::string& uid);

  // The number of jobs in held shards, by namespace and by the name of their phase; "" for jobs
  // without a phase.
  using Phases = std::map<std::string, std::size_t>;
  std::map<std::string, Phases> by_namespace(const Held& held) const;
  // The earliest `waiting.deadline`.
  std::optional<Time> first_deadline(const Held& held) const;

 private:
  struct Entry {
    int shard = 0;
    std::string namespace_;
    reconciler::Phase phase = reconciler::Phase::kNone;
    std::optional<Time> deadline;
  };
  struct Shard {
    std::map<std::string, std::map<reconciler::Phase, std::size_t>> namespaces;
    std::multiset<Time> deadlines;
  };

  void take_out(const Entry& entry);

  std::unordered_map<std::string, Entry> entries_;  // by UID
  std::map<int, Shard> shards_;
};

}  // namespace holdfast::controller
