#include "operator/jobs/job_census.h"

#include <algorithm>

namespace holdfast::controller {

void JobCensus::put(const std::string& uid, int shard, const std::string& namespace_,
                    const reconciler::Status& status) {
  Entry& entry =
      entries_.try_emplace(uid, Entry{-1, "", reconciler::Phase::kNone, {}}).first->second;
  if (entry.shard >= 0) take_out(entry);
  entry = {shard, namespace_, status.phase,
           status.waiting ? status.waiting->deadline : std::nullopt};
  Shard& all = shards_[shard];
  ++all.namespaces[namespace_][entry.phase];
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
  const auto namespace_ = all.namespaces.find(entry.namespace_);
  const auto count = namespace_->second.find(entry.phase);
  if (--count->second == 0) namespace_->second.erase(count);
  if (namespace_->second.empty()) all.namespaces.erase(namespace_);
  if (entry.deadline) all.deadlines.erase(all.deadlines.find(*entry.deadline));
}

std::map<std::string, JobCensus::Phases> JobCensus::by_namespace(const Held& held) const {
  std::map<std::string, Phases> namespaces;
  for (const auto& [shard, all] : shards_) {
    if (!held(shard)) continue;
    for (const auto& [namespace_, phases] : all.namespaces) {
      Phases& sum = namespaces[namespace_];
      for (const auto& [phase, count] : phases) sum[to_string(phase)] += count;
    }
  }
  return namespaces;
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
