#include "operator/jobs/job_census.h"

#include <algorithm>

namespace holdfast::controller {

void JobCensus::put(const std::string& uid, int shard, const reconciler::Status& status) {
  Entry& entry = entries_.try_emplace(uid, Entry{-1, reconciler::Phase::kNone, {}}).first->second;
  if (entry.shard >= 0) take_out(entry);
  entry = {shard, status.phase, status.waiting ? status.waiting->deadline : std::nullopt};
  Shard& all = shards_[shard];
  ++all.phases[entry.phase];
  if (entry.deadline) all.deadlines.insert(*entry.deadline);
}

void JobCensus::erase(const std::string& uid) {
  const auto entry = entries_.find(uid);
  if (entry == entries_.end()) return;
  take_out(entry->second);
  entries_.erase(entry);
}

void JobCensus::take_out(const Entry& entry) {
  Shard& all = shards_[entry.shard];
  --all.phases[entry.phase];
  if (entry.deadline) all.deadlines.erase(all.deadlines.find(*entry.deadline));
}

std::map<std::string, std::size_t> JobCensus::by_phase(const Held& held) const {
  std::map<std::string, std::size_t> phases;
  for (const auto& [shard, all] : shards_) {
    if (!held(shard)) continue;
    for (const auto& [phase, count] : all.phases) {
      if (count > 0) phases[to_string(phase)] += count;
    }
  }
  return phases;
}

std::optional<Time> JobCensus::first_deadline(const Held& held) const {
  std::optional<Time> first;
  for (const auto& [shard, all] : shards_) {
    if (all.deadlines.empty() || !held(shard)) continue;
    first = std::min(first.value_or(Time::max()), *all.deadlines.begin());
  }
  return first;
}

}  // namespace holdfast::controller
