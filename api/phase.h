// The words of a status: how far a job and its stages are, and how attempts have ended. Plain
// values, and their names in the API.
#pragma once

#include <optional>
#include <string>

namespace holdfast::api {

enum class Phase {
  kNone,  // no status yet
  kPending,
  kRunning,
  kBackoff,
  kSuspended,
  kCancelling,
  kSucceeded,
  kFailed,
  kCancelled,
};
const char* to_string(Phase phase);  // "" for kNone
std::optional<Phase> parse_phase(const std::string& text);
inline bool is_terminal(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kCancelled;
}

// A job of a queue with this recorded phase holds a permit of it.
inline bool holds_permit(Phase phase) {
  return phase == Phase::kRunning || phase == Phase::kCancelling;
}

// How an attempt ended.
enum class Outcome {
  kSucceeded,
  kFailed,
  kLost,
  kHung,
  kStartTimeout,
  kDeadlineExceeded,
  kSuspended,
  kCancelled,
  kDeferred,    // a Defer rule: what it needs is not ready
  kHandedBack,  // its worker gave it back before it began
};
const char* to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(const std::string& text);
// An outcome that only a newer version knows is taken for this one.
inline constexpr Outcome kUnknownOutcome = Outcome::kFailed;
// As for each enumeration that has words in the API: an unknown word leaves the value as it is.
inline void read_word(const std::string& word, Outcome& outcome) {
  outcome = parse_outcome(word).value_or(outcome);
}

// How far a stage is. Succeeded, Failed and Skipped are for ever.
enum class StagePhase { kPending, kRunning, kSucceeded, kFailed, kSkipped };
const char* to_string(StagePhase phase);
std::optional<StagePhase> parse_stage_phase(const std::string& text);
inline bool has_ended(StagePhase phase) {
  return phase != StagePhase::kPending && phase != StagePhase::kRunning;
}

// Which budget an ended attempt spends.
enum class Budget { kNone, kFailures, kDisruptions };
Budget budget_of(Outcome outcome);

}  // namespace holdfast::api
