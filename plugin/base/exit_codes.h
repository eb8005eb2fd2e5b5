// The exit codes of kubectl-holdfast.
#pragma once

namespace holdfast::plugin {

inline constexpr int kExitDone = 0;
inline constexpr int kExitJobFailed = 1;  // with --wait: the job failed or was cancelled
inline constexpr int kExitRefused = 2;    // wrong input, no rights, no such object, no server

}  // namespace holdfast::plugin
