// The answers of the probes. Liveness fails if the loop or a watch is stuck. Readiness fails while
// the caches are not synced. So a replica that waits for the API server is alive but not ready.
//
// The loop writes once a second (beat()), the probe server's thread reads. One small lock.
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
  Duration live_age{};  // since `live` last changed
};

class Health {
 public:
  // A loop that has not run for this long is stuck. Our callbacks take a few milliseconds at most;
  // a list of 50,000 objects takes a few seconds.
  static constexpr Duration kLoopLimit = std::chrono::seconds(30);
  // An open watch that is quiet for longer was forgotten. The server ends each watch after 10
  // minutes, and the idle limit ends a quiet watch earlier.
  static constexpr Duration kWatchQuietLimit = std::chrono::seconds(605 + 60);
  // A closed watch is opened again after a back-off of at most 30 s. If it stays closed for this
  // long while requests are answered, nobody tries.
  static constexpr Duration kWatchDownLimit = std::chrono::minutes(11);

  explicit Health(SteadyTime now) : beat_at_(now) {}

  // On the loop, about once a second. `answered_at`: when the API server last answered.
  void beat(SteadyTime now, const std::vector<WatchHealth>& watches,
            std::optional<SteadyTime> answered_at);
  // Not ready from now on.
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
