// What `check` knows of the agent: a line that the agent leaves beside the progress file.
//
// Both read CLOCK_BOOTTIME, on one machine: an agent that was killed or stopped leaves a line that
// grows old.
#pragma once

#include <optional>
#include <string>

#include "agent/guard.h"
#include "core/time.h"

namespace holdfast::agent {

struct AgentState {
  enum class Phase {
    kWaiting,  // for its turn
    kRunning,  // the child
    kOver,
  };
  Phase phase = Phase::kOver;
  // When the last acknowledged renewal was sent; kWaiting: when the agent was at work.
  std::optional<SteadyTime> renewed;
  Duration duration{};  // the Lease's
};

std::string format_state(const AgentState& state);
std::optional<AgentState> parse_state(const std::string& text);

// Why a worker with this state (none: no line, or another's) is not well; empty: it is.
std::string complaint(const std::optional<AgentState>& state, SteadyTime now);

}  // namespace holdfast::agent
