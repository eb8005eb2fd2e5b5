// What the probes say: liveness fails when the loop or a watch is stuck, readiness while the caches
// are not synced. They are different: a replica that waits for the API server is alive, not ready.
//
// The loop writes (once a second: beat()), the probe server's thread reads; one small lock.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_annotations.h"
#include "core/time.h"
#include "operator/runtime/probe_server.h"

namespace holdfast::runtime {

// One kind's watches, as the loop sees them.
struct WatchHealth {
  std::string kind;
  bool synced = false;
  bool live = false;
  Duration quiet{};     // since the last byte
  Duration live_age{};  // since `live` has had its value
};

class Health {
 public:
  // A loop that has not run for this long is stuck: no callback of ours takes more than a few
  // milliseconds, a list of 50,000 objects a few seconds.
  static constexpr Duration kLoopLimit = std::chrono::seconds(30);
  // A watch is asked for with at most 10 minutes, and ends by itself when it is quiet for less (its
  // idle limit): an open one that is quiet for longer than all of that was forgotten.
  static constexpr Duration kWatchQuietLimit = std::chrono::seconds(605 + 60);
  // A closed one is opened again within a back-off of 30 s; not for this long, while requests are
  // answered, means that nobody tries.
  static constexpr Duration kWatchDownLimit = std::chrono::minutes(11);

  explicit Health(SteadyTime now) : beat_at_(now) {}

  // On the loop, about once a second. `answered_at`: when the API server last answered a request.
  void beat(SteadyTime now, const std::vector<WatchHealth>& watches,
            std::optional<SteadyTime> answered_at);
  // From here on not ready.
  void stopping();

  // Any thread.
  ProbeAnswer healthz(SteadyTime now) const;
  ProbeAnswer readyz() const;

 private:
  mutable Mutex mutex_;
  SteadyTime beat_at_ HOLDFAST_GUARDED_BY(mutex_);
  std::string stuck_watch_ HOLDFAST_GUARDED_BY(mutex_);             // why, empty: none
  std::string not_ready_ HOLDFAST_GUARDED_BY(mutex_) = "starting";  // why, empty: ready
  bool stopping_ HOLDFAST_GUARDED_BY(mutex_) = false;
};

}  // namespace holdfast::runtime
