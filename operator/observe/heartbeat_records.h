// When each job's Lease last changed, last showed progress, or lost its holder. The
// HeartbeatMonitor's part without I/O: times are parameters. Loop only.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "operator/codecs/heartbeat_codec.h"
#include "operator/observe/look_times.h"
#include "operator/observe/namespace_clocks.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"
#include "reconciler/types.h"

namespace holdfast::observe {

class HeartbeatRecords {
 public:
  // `elsewhere`: of the nodes. A replica sees the Leases of its own shards alone, which may be few.
  explicit HeartbeatRecords(const std::vector<std::string>& namespaces = {},
                            reconciler::RecordTracker::Elsewhere elsewhere = nullptr)
      : clocks_(namespaces), tracker_(kube::namespace_of, std::move(elsewhere)) {}

  void watch(const std::function<bool(const std::string& watched)>& is_live, SteadyTime now) {
    clocks_.watch(is_live, now);
  }
  void proof(SteadyTime now) { clocks_.proof(now); }

  // `worked_on`: the result of reconciler::is_worked_on(). Leases without a known worker are not
  // judged, and their silence proves nothing about other Leases.
  void seen(const codecs::CachedHeartbeat& lease, bool worked_on, SteadyTime now);
  void gone(const std::string& key);

  // `window`: the Lease's duration. `asked`: up to when.
  reconciler::LeaseObservation observe(const codecs::CachedHeartbeat& lease, Duration window,
                                       SteadyTime now, const LookTimes& asked = {});
  Duration live_now(const std::string& namespace_, SteadyTime now) {
    return clocks_.read(namespace_, now).now;
  }

  // No write of the Lease was seen since the watch was last interrupted, or since this process
  // started. The interruption itself may explain the holder's silence.
  bool unheard_since_gap(const std::string& key, SteadyTime now);

  // For each kind: who waits for this Lease.
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
    Duration first_seen{0};  // in live time: when this process first saw this progress
    std::uint64_t version = 0;
    std::optional<Duration> changed;  // in live time: when this process saw the Lease change
  };
  reconciler::LiveTime time(const std::string& key, SteadyTime now);

  NamespaceClocks clocks_;
  // Leases that a worker should renew, in groups by namespace.
  reconciler::RecordTracker tracker_;
  // Leases that nobody can renew. Their time counts on any clock. Leases in taken_ have no holder,
  // and nobody was granted them meanwhile; the attempt may change. In ended_ the holder has set the
  // end mark.
  reconciler::RecordTracker taken_;
  reconciler::RecordTracker ended_;
  std::unordered_map<std::string, Marks> marks_;  // as many as there are Leases
};

}  // namespace holdfast::observe
