#include "operator/queues/coming_pods.h"

#include <algorithm>
#include <utility>

#include "reconciler/refusals.h"
#include "reconciler/run/creations.h"

namespace holdfast::queues {

bool ComingPods::may_come(const codecs::CachedJob& job, Time now, SteadyTime steady) {
  const reconciler::Status& status = job.job.status;
  if (const Coming* const known = find(job)) return known->until > steady;
  forget(job);
  Duration longest{0};
  for (const auto& one : reconciler::podless_attempts(status, now)) {
    if (one.closed) longest = std::max(longest, *one.closed + reconciler::kCreationLimit - now);
  }
  if (longest <= Duration::zero()) return false;
  longest = std::min<Duration>(longest, reconciler::kCreationLimit);
  by_namespace_[job.namespace_][job.key()] = {status.attempt, steady + longest};
  return true;
}

bool ComingPods::none_comes(const codecs::CachedJob& job, SteadyTime steady) {
  Coming* const known = find(job);
  if (!known) return false;
  known->until = std::min(known->until, steady);
  return !std::exchange(known->is_over, true);
}

void ComingPods::forget(const codecs::CachedJob& job) {
  const auto jobs = by_namespace_.find(job.namespace_);
  if (jobs == by_namespace_.end()) return;
  jobs->second.erase(job.key());
  if (jobs->second.empty()) by_namespace_.erase(jobs);
}

ComingPods::Look ComingPods::look(const std::string& ns, SteadyTime steady) {
  Look look;
  const auto jobs = by_namespace_.find(ns);
  if (jobs == by_namespace_.end()) return look;
  for (auto& [key, coming] : jobs->second) {
    if (coming.is_over) continue;
    const Duration left = coming.until - steady;
    coming.is_over = left <= Duration::zero();
    if (coming.is_over) {
      look.over.push_back(key);
    } else {
      look.next = std::min(look.next.value_or(left), left);
    }
  }
  return look;
}

// Of the job's last attempt; null: nothing is known.
ComingPods::Coming* ComingPods::find(const codecs::CachedJob& job) {
  const auto jobs = by_namespace_.find(job.namespace_);
  if (jobs == by_namespace_.end()) return nullptr;
  const auto known = jobs->second.find(job.key());
  const bool is_same =
      known != jobs->second.end() && known->second.attempt == job.job.status.attempt;
  return is_same ? &known->second : nullptr;
}

}  // namespace holdfast::queues
