// The controller's reports about its work, for metrics. Calls are cheap and never fail. Loop only.
// The runtime implements it with prometheus-cpp; tests count calls.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"
#include "reconciler/orphan_class.h"

namespace holdfast::jobs {

class Telemetry {
 public:
  virtual ~Telemetry() = default;
  // An ended attempt was recorded; outcome as in status.history (Succeeded, Lost, ...).
  virtual void attempt_ended(const std::string& namespace_, const std::string& outcome) = 0;
  // A job's first attempt was recorded, so long after its creation.
  virtual void job_started(const std::string& /*namespace_*/, Duration /*waited*/) {}
  // A job reached a terminal phase. `took`: since its first attempt; none: it had none.
  virtual void job_ended(const std::string& /*namespace_*/, const std::string& /*phase*/,
                         std::optional<Duration> /*took*/) {}
  // A stage of a job with stages has ended. `took`: since its first intent; none: it had not begun.
  virtual void stage_ended(const std::string& phase, std::optional<Duration> took) = 0;
  // A lost, hung or overlong attempt was recovered: its successor's pod (or the job's end) came
  // `took` after the trouble began.
  virtual void recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                         Duration took) = 0;
  // A fenced attempt's pod reported an end that does not count.
  virtual void fenced_outcome(const std::string& pod_phase) = 0;
  // A queue admitted a job that had waited for so long.
  virtual void admitted(const std::string& namespace_, const std::string& queue,
                        Duration waited) = 0;
  // Of pools of warm workers. An attempt's entry was written; its job had waited for so long for
  // the slot. A worker gave an attempt back that it had not begun. A worker was cut off.
  virtual void slot_taken(const std::string& /*namespace_*/, const std::string& /*pool*/,
                          Duration /*waited*/) {}
  virtual void handed_back(const std::string& /*namespace_*/, const std::string& /*pool*/) {}
  virtual void cut_off(const std::string& /*namespace_*/, const std::string& /*pool*/,
                       const std::string& /*reason*/) {}
  // A try to deliver an event to a target of the configuration ended so; `result` is one of
  // kNotificationResults.
  virtual void notified(const std::string& /*target*/, const std::string& /*result*/) {}
  // An event was given up: the target will not get it. The job named the target, so it may be none
  // of the configuration.
  virtual void notification_dropped(const std::string& /*target*/) {}
  // Another controller's pod was freed, its node silent for so long. Or it was not, and why.
  virtual void rescued(const std::string& /*namespace_*/, Duration /*silent*/) {}
  virtual void rescue_refused(const std::string& /*reason*/) {}
  // A shard came to this replica or left it; `how` is one of kShardMoves.
  virtual void shard_moved(const std::string& how) = 0;
};

// delivered: the target took it. failed: it did not, and there will be another try. refused: it
// never will.
inline constexpr const char* kNotificationResults[] = {"delivered", "failed", "refused"};

// taken: by another replica, while we held it. lapsed: the renew deadline passed.
inline constexpr const char* kShardMoves[] = {"gained", "handed_over", "released", "taken",
                                              "lapsed"};

}  // namespace holdfast::jobs
