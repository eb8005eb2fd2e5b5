// For how long this replica has seen workers silent, behind, or missing. As in HeartbeatRecords,
// time counts only while the watch is open and the renewals of our member Lease succeed. What other
// processes have seen counts, too: see keep_windows(). Without I/O: times are parameters. Loop
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "operator/observe/namespace_clocks.h"
#include "operator/observe/window_keeper.h"
#include "operator/pools/worker_leases.h"
#include "reconciler/pool/worker.h"
#include "reconciler/staleness.h"

namespace holdfast::pools {

class WorkerTimes {
 public:
  explicit WorkerTimes(const std::vector<std::string>& namespaces = {}) : clocks_(namespaces) {}

  void watch(const std::function<bool(const std::string& watched)>& is_live, SteadyTime now) {
    clocks_.watch(is_live, now);
  }
  void proof(SteadyTime now) { clocks_.proof(now); }

  // The worker's Leases were seen. `key`: "namespace/pod UID". `work` may be null. `before`: the
  // version of the worker Lease that was seen before this one, or null.
  void seen(const std::string& key, const CachedWorkerLease& lease, const CachedWorkerLease* work,
            const CachedWorkerLease* before, SteadyTime now);
  void gone(const std::string& key);

  // The worker Lease has stood still. Zero: unknown, or nobody needs to renew it. `duration`: the
  // worker's, for how long it may.
  Duration silent_for(const std::string& key, Duration duration, SteadyTime now);
  // The echo has been behind the work Lease (reconciler::EchoLag).
  Duration lags_for(const std::string& key, Duration duration, SteadyTime now);
  // See RecordTracker::held_back().
  bool held_back(const std::string& key, Duration window, SteadyTime now);

  // There is no Lease with this UID. `key`: "namespace/UID". Counts from the first call.
  Duration missing_for(const std::string& key, SteadyTime now);
  void found(const std::string& key) { missing_.gone(key); }

  // For each kind: who waits for this worker. The keys are as above.
  using Wanted =
      std::function<observe::WindowKeeper::Wanted(const std::string& key, Duration silent)>;
  struct WantedBy {
    Wanted silent, revoked, lagging, missing;
  };
  void keep_windows(observe::WindowKeeper& windows, const std::function<SteadyTime()>& clock,
                    const WantedBy& wanted);

 private:
  void see_revoked(const std::string& key, const CachedWorkerLease& lease,
                   const CachedWorkerLease* before, reconciler::LiveTime live);
  void see_echo(const std::string& key, const CachedWorkerLease& lease,
                const CachedWorkerLease* work, Duration live_now);
  reconciler::LiveTime time(const std::string& key, SteadyTime now);

  observe::NamespaceClocks clocks_;
  // Leases that agents should renew, in groups by namespace.
  reconciler::RecordTracker renewed_{
      [](const std::string& key) { return key.substr(0, key.find('/')); }};
  reconciler::RecordTracker revoked_;  // Leases that nobody can renew
  reconciler::RecordTracker missing_;
  reconciler::RecordTracker lagging_;  // echoes
  std::unordered_map<std::string, reconciler::EchoLag> lags_;
};

}  // namespace holdfast::pools
