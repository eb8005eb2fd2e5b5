// What the controller tells about its work, for metrics. Calls are cheap and never fail; on the
// loop. The runtime implements it over prometheus-cpp, tests count.
#pragma once

#include <string>

#include "core/time.h"

namespace holdfast::controller {

class Telemetry {
 public:
  virtual ~Telemetry() = default;
  // An ended attempt was recorded; outcome as in status.history (Succeeded, Lost, ...).
  virtual void attempt_ended(const std::string& outcome) = 0;
  // A lost, hung or overlong attempt was followed by its successor's pod (or by the job's end)
  // this long after the trouble began. `orphan_class` is one of kOrphanClasses.
  virtual void recovered(const std::string& orphan_class, Duration took) = 0;
  // A fenced attempt's pod reported an end that does not count.
  virtual void fenced_outcome(const std::string& pod_phase) = 0;
  // A shard came to this replica or left it; `how` is one of kShardMoves.
  virtual void shard_moved(const std::string& how) = 0;
};

// The classes of the recovery histogram, as in docs/concepts.md. Created at zero.
inline constexpr const char* kOrphanClasses[] = {
    "intent_without_pod", "pod_never_started", "pod_vanished",          "pod_disrupted",
    "node_gone",          "node_silent",       "pod_stuck_terminating", "holder_silent",
    "holder_hung",        "attempt_too_long",  "cancel_dead_worker"};

// taken: by another replica, while it was held. lapsed: the renew deadline had passed.
inline constexpr const char* kShardMoves[] = {"gained", "handed_over", "released", "taken",
                                              "lapsed"};

}  // namespace holdfast::controller
