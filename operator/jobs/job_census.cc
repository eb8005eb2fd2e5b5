#include "operator/jobs/job_census.h"

#include <algorithm>

#include "reconciler/names.h"

namespace holdfast::jobs {

void JobCensus::put(const std::string& uid, int shard, const std::string& namespace_,
                    const reconciler::Status& status) {
  const std::uint64_t hash = reconciler::hash64(uid);
  const auto [place, is_new] = entries_.try_emplace(hash);
  Entry& entry = place->second;
  if (!is_new) take_out(hash, entry);
  const std::optional<Time> deadline = status.waiting ? status.waiting->deadline : std::nullopt;
  entry = {&*namespaces_.insert(namespace_).first, static_cast<std::int16_t>(shard), status.phase,
           deadline.has_value()};
  Shard& all = shards_[shard];
  ++all.namespaces[namespace_][entry.phase];
  if (!deadline) return;
  all.deadlines.insert(*deadline);
  deadlines_[hash] = *deadline;
}

void JobCensus::erase(const std::string& uid) {
  const auto entry = entries_.find(reconciler::hash64(uid));
  if (entry == entries_.end()) return;
  take_out(entry->first, entry->second);
  entries_.erase(entry);
}

void JobCensus::take_out(std::uint64_t uid, const Entry& entry) {
  Shard& all = shards_[entry.shard];
  const auto namespace_ = all.namespaces.find(*entry.namespace_);
  const auto count = namespace_->second.find(entry.phase);
  if (--count->second == 0) namespace_->second.erase(count);
  if (namespace_->second.empty()) all.namespaces.erase(namespace_);
  if (!entry.has_deadline) return;
  const auto deadline = deadlines_.find(uid);
  all.deadlines.erase(all.deadlines.find(deadline->second));
  deadlines_.erase(deadline);
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

}  // namespace holdfast::jobs
