#include "operator/jobs/job_memory.h"

#include <algorithm>

namespace holdfast::controller {

// In a long outage the first try or the last is the one that may have been applied.
void AttemptMemory::add_intent(const std::optional<Time>& stamp) {
  constexpr std::size_t kMostStamps = 16;
  if (!stamp) return;
  if (intent_stamps.size() == kMostStamps) intent_stamps.pop_back();
  intent_stamps.push_back(*stamp);
}

bool AttemptMemory::has_intent(const std::optional<Time>& stamp) const {
  return stamp &&
         std::find(intent_stamps.begin(), intent_stamps.end(), *stamp) != intent_stamps.end();
}

AttemptMemory& JobMemory::at_attempt(std::int64_t number) {
  attempts.erase(attempts.begin(), attempts.lower_bound(number));
  return attempts[number];
}

const AttemptMemory* JobMemory::find_attempt(std::int64_t number) const {
  const auto found = attempts.find(number);
  return found == attempts.end() ? nullptr : &found->second;
}

AttemptMemory* JobMemory::find_attempt(std::int64_t number) {
  const auto found = attempts.find(number);
  return found == attempts.end() ? nullptr : &found->second;
}

}  // namespace holdfast::controller
