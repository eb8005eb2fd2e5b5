// What `check` knows of the agent: a line that the agent leaves beside the progress file.
//
// Both read CLOCK_BOOTTIME, on one machine: an agent that was killed or stopped leaves a line that
// grows old.
#pragma once

#include <optional>
#include <string>

#include "agent/guard.h"
#include "operator/core/time.h"

namespace holdfast::agent {

struct AgentState {
  bool running = false;               // the child
  std::optional<SteadyTime> renewed;  // when the last acknowledged renewal was sent
  Duration duration{};                // the Lease's
};

std::string format_state(const AgentState& state);
std::optional<AgentState> parse_state(const std::string& text);

// Why a worker with this state (none: no line, or another's) is not well; empty: it is.
std::string complaint(const std::optional<AgentState>& state, SteadyTime now);

}  // namespace holdfast::agent
