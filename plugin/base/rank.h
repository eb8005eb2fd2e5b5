// Which of many jobs a person should look at first. `top` and the page sort by it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::plugin {

// The operator acts within a second of a deadline. The rest is for clocks and slow API servers:
// beyond it, the operator is late.
inline constexpr std::chrono::seconds kGrace{5};

// The worst first. What needs a person comes before what only waits.
enum class Rank {
  kStalled,
  kLate,
  kTrouble,
  kBackoff,
  kFailed,
  kCancelling,
  kPending,
  kSuspended,
  kRunning,
  kCancelled,
  kSucceeded,
};

// What a job's rank depends on.
struct RankOf {
  std::string phase;
  bool stalled = false;
  std::string waiting;  // the reason; empty: it has none
  std::optional<Time> deadline;
};

Rank rank_of(const RankOf& job, Time now);

// Only an administrator can end such a wait, and the job itself says nothing is wrong with it.
bool awaits_administrator(const std::string& reason);

}  // namespace holdfast::plugin
