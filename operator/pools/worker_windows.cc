#include "operator/pools/worker_windows.h"

namespace holdfast::pools {

using Wanted = observe::WindowKeeper::Wanted;

void WorkerWindows::keep(observe::WindowKeeper& keeper) const {
  // No date says whether an echo is late.
  const auto live = [all = *this](const auto& key, Duration) { return all.revoked(key); };
  deps.times.keep_windows(
      keeper, [all = *this] { return all.deps.loop.now(); },
      {[all = *this](const auto& key, Duration silent) { return all.silent(key, silent); }, live,
       live, [all = *this](const auto& key, Duration) { return all.missing(key); }});
}

// A healthy worker with a long duration may be silent for longer than this process lives. So dates
// say whether it is late; they only decide whether to record its silence. The breaker may add a
// window.
Wanted WorkerWindows::silent(const std::string& key, Duration silent_for) const {
  const auto found = deps.known.workers().find(key);
  if (found == deps.known.workers().end() || !found->second->lease) return {};
  const Worker& worker = *found->second;
  const Duration duration = worker.duration();
  const auto& renewed = worker.lease->renewed;
  const bool is_late = renewed && deps.now() - *renewed >= duration / 2;
  if (silent_for < duration / 2 && !is_late) return {};
  return {{deps.membership.shard_of(worker.namespace_)}, 2 * duration};
}

Wanted WorkerWindows::revoked(const std::string& key) const {
  const auto found = deps.known.workers().find(key);
  if (found == deps.known.workers().end()) return {};
  return {{deps.membership.shard_of(found->second->namespace_)}, found->second->duration()};
}

Wanted WorkerWindows::missing(const std::string& key) const {
  const std::string ns = kube::namespace_of(key);
  const std::string uid = key.substr(ns.size() + 1);
  for (const auto& [pool_key, pool] : deps.known.pools()) {
    const WorkerSlots& slots = pool->book.workers().of(uid);
    if (kube::namespace_of(pool_key) != ns || !slots.is_missing()) continue;
    return {{deps.membership.shard_of(ns)}, slots.lease_duration()};
  }
  return {};
}

}  // namespace holdfast::pools
