// The file through which `check` sees the agent's state: one line, next to the progress file.
//
// Both use CLOCK_BOOTTIME on one machine. So the line of a killed or stopped agent grows old.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::agent {

struct AgentState {
  enum class Phase {
    kWaiting,  // for the Lease's grant
    kRunning,  // the child runs
    kOver,
  };
  Phase phase = Phase::kOver;
  // When the last acknowledged renewal was sent. kWaiting: when the agent last ran.
  std::optional<SteadyTime> renewed;
  Duration duration{};  // the Lease's
};

// The file that `check` reads, next to the progress file.
std::string state_file_of(const std::string& progress_file);

std::string format_state(const AgentState& state);
std::optional<AgentState> parse_state(const std::string& text);

// Why a worker with this state is unhealthy; empty: it is healthy. No state: no line, or a foreign
// one.
std::string complaint(const std::optional<AgentState>& state, SteadyTime now);

}  // namespace holdfast::agent
