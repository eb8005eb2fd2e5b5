#include "api/known_words.h"

#include <algorithm>
#include <string>

namespace holdfast::api {

Phase known_phase(const JsonView& json) {
  const std::string text = string_at(json, "phase");
  const auto known = parse_phase(text);
  if (known || text.empty()) return known.value_or(Phase::kNone);
  const auto holds = [&](const char* type) {
    const JsonView conditions = at(json, "conditions");
    return std::any_of(conditions.begin(), conditions.end(), [&](const JsonView& one) {
      return string_at(one, "type") == type && string_at(one, "status") == "True";
    });
  };
  if (at(json, "completionTime").is_string()) {
    return holds("Complete") ? Phase::kSucceeded
                             : (holds("Cancelled") ? Phase::kCancelled : Phase::kFailed);
  }
  const JsonView runs = at(json, "runs");
  const bool is_open = std::any_of(runs.begin(), runs.end(), [](const JsonView& run) {
    return !at(run, "nextAttemptTime").is_string();
  });
  if (is_open) return Phase::kRunning;
  return int_at(json, "attempt") > 0 ? Phase::kBackoff : Phase::kPending;
}

StagePhase known_stage_phase(const JsonView& json) {
  const auto known = parse_stage_phase(string_at(json, "phase"));
  if (known) return *known;
  const bool has_begun = at(json, "startTime").is_string();
  const bool has_message = at(json, "message").is_string();
  if (at(json, "completionTime").is_string()) {
    return has_message ? StagePhase::kFailed : StagePhase::kSucceeded;
  }
  if (has_begun) return StagePhase::kRunning;
  return has_message ? StagePhase::kSkipped : StagePhase::kPending;
}

}  // namespace holdfast::api
