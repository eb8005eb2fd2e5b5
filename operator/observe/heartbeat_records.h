// When each job's Lease was last seen to change, to make progress, to stand without a holder. The
// part of the HeartbeatMonitor that asks nobody: times are handed in. Loop only.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "core/time.h"
#include "operator/observe/heartbeat_codec.h"
#include "operator/observe/namespace_clocks.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"
#include "reconciler/types.h"

namespace holdfast::controller {

class HeartbeatRecords {
 public:
  explicit HeartbeatRecords(const std::vector<std::string>& namespaces = {})
      : clocks_(namespaces) {}

  void watch(const std::function<bool(const std::string& watched)>& is_live, SteadyTime now) {
    clocks_.watch(is_live, now);
  }
  void proof(SteadyTime now) { clocks_.proof(now); }

  // `worked_on`: reconciler::is_worked_on() says so. A Lease of which it does not is judged by
  // nobody, and its silence says nothing about others'.
  void seen(const CachedHeartbeat& lease, bool worked_on, SteadyTime now);
  void gone(const std::string& key);

  // `window`: the Lease's duration.
  reconciler::LeaseObservation observe(const CachedHeartbeat& lease, Duration window,
                                       SteadyTime now);

  // Nobody has been seen to write it since the watch was last interrupted, or since this life
  // began: what befell its holder may have come of the interruption.
  bool unheard_since_gap(const std::string& key, SteadyTime now);

  // Of each kind: who waits for the Lease of this key.
  using Wanted = std::function<WindowKeeper::Wanted(const std::string& key, Duration silent)>;
  struct WantedBy {
    Wanted silent, taken, ended;
  };
  void keep_windows(WindowKeeper& windows, const Loop& loop, const WantedBy& wanted);

 private:
  struct Marks {
    std::string holder;
    std::string progress;
    Duration progressed{0};  // in live time
    Duration first_seen{0};  // likewise: this progress, in this life
    std::uint64_t version = 0;
    std::optional<Duration> changed;  // in live time, in this life: the Lease itself
  };
  reconciler::LiveTime time(const std::string& key, SteadyTime now);

  NamespaceClocks clocks_;
  reconciler::RecordTracker tracker_;  // of those that are being renewed
  // What nobody can renew counts on any clock. Without a holder: the same Lease, granted to nobody
  // meanwhile, whatever attempts it was taken for. With the end mark: of the same holder.
  reconciler::RecordTracker taken_;
  reconciler::RecordTracker ended_;
  std::unordered_map<std::string, Marks> marks_;  // as many as there are Leases
};

}  // namespace holdfast::controller
