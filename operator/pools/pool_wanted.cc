// Which silences of workers are recorded, and for which shards: only those that a verdict needs.
#include "operator/jobs/job_controller.h"
#include "operator/pools/pool_controller.h"

namespace holdfast::controller {

using Wanted = WindowKeeper::Wanted;

void PoolController::keep_windows(WindowKeeper& windows) {
  times_.keep_windows(
      windows, [this] { return loop_.now(); },
      {[this](const auto& key, Duration silent) { return silence_wanted(key, silent); },
       [this](const auto& key, Duration) { return revoked_wanted(key); },
       [this](const auto& key, Duration) { return echo_wanted(key); },
       [this](const auto& key, Duration) { return missing_wanted(key); }});
}

// A healthy worker with a long duration may be silent for longer than this process lives. So dates
// say whether it is late; they only decide whether to record its silence. The breaker may add a
// window.
Wanted PoolController::silence_wanted(const std::string& key, Duration silent) const {
  const auto found = workers_.find(key);
  if (found == workers_.end() || !found->second->lease) return {};
  const Worker& worker = *found->second;
  const Duration duration = worker.duration();
  const auto& renewed = worker.lease->renewed;
  const bool is_late = renewed && now() - *renewed >= duration / 2;
  if (silent < duration / 2 && !is_late) return {};
  return {{membership_.shard_of(worker.namespace_)}, 2 * duration};
}

Wanted PoolController::revoked_wanted(const std::string& key) const {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return {};
  return {{membership_.shard_of(found->second->namespace_)}, found->second->duration()};
}

// No date says whether an echo is late.
Wanted PoolController::echo_wanted(const std::string& key) const { return revoked_wanted(key); }

Wanted PoolController::missing_wanted(const std::string& key) const {
  const std::string ns = namespace_of(key);
  const std::string uid = key.substr(ns.size() + 1);
  for (const auto& [pool_key, pool] : books_) {
    if (namespace_of(pool_key) != ns || !pool->book.workers().of(uid).is_missing()) continue;
    return {{membership_.shard_of(ns)}, pool->book.workers().of(uid).lease_duration()};
  }
  return {};
}

}  // namespace holdfast::controller
