// Totals over all jobs, for metrics. They are updated when the cache changes, because a scrape must
// not walk tens of thousands of jobs and delay decisions. Loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "core/time.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

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
  // Small, because there is one for each job, also a finished one.
  struct Entry {
    const std::string* namespace_ = nullptr;  // of namespaces_
    std::int16_t shard = 0;
    reconciler::Phase phase = reconciler::Phase::kNone;
    bool has_deadline = false;
  };
  struct Shard {
    std::map<std::string, std::map<reconciler::Phase, std::size_t>> namespaces;
    std::multiset<Time> deadlines;
  };

  void take_out(std::uint64_t uid, const Entry& entry);

  // By the hash of the UID, which the API server chooses.
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::unordered_map<std::uint64_t, Time> deadlines_;
  std::set<std::string> namespaces_;
  std::map<int, Shard> shards_;
};

}  // namespace holdfast::jobs
