// The exit codes of a shell, and so of the agent.
#pragma once

namespace holdfast::agent {

inline constexpr int kNotFound = 127;   // there is no such command
inline constexpr int kCannotRun = 126;  // it cannot be run

}  // namespace holdfast::agent
