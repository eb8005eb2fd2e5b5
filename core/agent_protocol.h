// The words between the operator and the agent (docs/internals/heartbeat.md). They are in
// annotations of a heartbeat's Lease, in variables of the container, and in the agent's termination
// message. The two are separate programs.
#pragma once

#include <cstddef>

namespace holdfast {

// The start of the worker's command, before "run" or "serve".
inline constexpr const char* kAgentProgram = "/holdfast/agent";

// The operator's: the last pod that the Lease was granted to.
inline constexpr const char* kGrantedAnnotation = "holdfast.dev/granted";
// The agent's reports.
inline constexpr const char* kProgressAnnotation = "holdfast.dev/progress";
inline constexpr const char* kProgressAgeAnnotation = "holdfast.dev/progress-age";
inline constexpr const char* kProgressMessageAnnotation = "holdfast.dev/progress-message";
// The worker's last checkpoint. The operator keeps it when the Lease changes hands, and the agent
// of the next attempt gives it to its child in this variable.
inline constexpr const char* kCheckpointAnnotation = "holdfast.dev/checkpoint";
inline constexpr const char* kCheckpointVariable = "HOLDFAST_CHECKPOINT";
inline constexpr std::size_t kMaxCheckpointBytes = 1024;
// How often the holder's worker has said "not yet" (Defer); the agent runs it again in the same
// pod.
inline constexpr const char* kDeferralsAnnotation = "holdfast.dev/deferrals";
// Which exit codes say so: "75:60:1000", comma-separated: the code, the seconds until the command
// runs again, and how many deferrals in a row are allowed. And how many there were in the attempts
// before.
inline constexpr const char* kDeferVariable = "HOLDFAST_DEFER";
inline constexpr const char* kDeferralsVariable = "HOLDFAST_DEFERRALS";
inline constexpr const char* kEndedAnnotation = "holdfast.dev/ended";

// The exit code of an agent that fenced itself, and the prefix of its termination message.
inline constexpr int kFencedExitCode = 85;
inline constexpr const char* kFencedMark = "holdfast: fenced: ";

}  // namespace holdfast
