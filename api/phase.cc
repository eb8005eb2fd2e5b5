#include "api/phase.h"

#include <array>
#include <cstddef>

namespace holdfast::api {
namespace {

constexpr std::array<const char*, 9> kPhases = {"",          "Pending",   "Running",
                                                "Backoff",   "Suspended", "Cancelling",
                                                "Succeeded", "Failed",    "Cancelled"};
constexpr std::array<const char*, 10> kOutcomes = {
    "Succeeded",        "Failed",    "Lost",      "Hung",     "StartTimeout",
    "DeadlineExceeded", "Suspended", "Cancelled", "Deferred", "HandedBack"};

constexpr std::array<const char*, 5> kStagePhases = {"Pending", "Running", "Succeeded", "Failed",
                                                     "Skipped"};

template <class Enum, std::size_t N>
std::optional<Enum> parse(const std::array<const char*, N>& names, const std::string& text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* to_string(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }
std::optional<Phase> parse_phase(const std::string& text) { return parse<Phase>(kPhases, text); }
const char* to_string(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::optional<Outcome> parse_outcome(const std::string& text) {
  return parse<Outcome>(kOutcomes, text);
}
const char* to_string(StagePhase phase) { return kStagePhases[static_cast<std::size_t>(phase)]; }
std::optional<StagePhase> parse_stage_phase(const std::string& text) {
  return parse<StagePhase>(kStagePhases, text);
}

Budget budget_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
    case Outcome::kHung:
    case Outcome::kDeadlineExceeded:
      return Budget::kFailures;
    case Outcome::kLost:
    case Outcome::kStartTimeout:
      return Budget::kDisruptions;
    case Outcome::kSucceeded:
    case Outcome::kSuspended:
    case Outcome::kCancelled:
    case Outcome::kDeferred:
    case Outcome::kHandedBack:
      return Budget::kNone;
  }
  return Budget::kNone;
}

}  // namespace holdfast::api
