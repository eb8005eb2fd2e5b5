#include "operator/jobs/job_memory.h"

#include <algorithm>
#include <unordered_set>

namespace holdfast::jobs {

// In a long outage the first try or the last is the one that may have been applied.
void AttemptMemory::add_intent(const std::optional<Time>& stamp) {
  constexpr std::size_t kMostStamps = 16;
  if (!stamp) return;
  if (intent_stamps.size() == kMostStamps) intent_stamps.pop_back();
  intent_stamps.push_back(*stamp);
}

void AttemptMemory::add_stranger(const std::string& uid) {
  constexpr std::size_t kMostStrangers = 16;
  if (uid.empty() || is_stranger(uid)) return;
  if (strangers.size() == kMostStrangers) strangers.erase(strangers.begin());
  strangers.push_back(uid);
}

bool AttemptMemory::is_stranger(const std::string& uid) const {
  return std::find(strangers.begin(), strangers.end(), uid) != strangers.end();
}

bool AttemptMemory::has_intent(const std::optional<Time>& stamp) const {
  return stamp &&
         std::find(intent_stamps.begin(), intent_stamps.end(), *stamp) != intent_stamps.end();
}

void JobMemory::keep_only(const reconciler::Status& status, std::uint64_t shown,
                          const std::vector<reconciler::PodlessAttempt>& podless, SteadyTime now) {
  std::unordered_set<std::int64_t> open;
  std::unordered_set<std::int64_t> begun;
  for (const reconciler::Run& run : status.runs) {
    begun.insert(run.index);
    if (run.open()) open.insert(run.attempt);
  }
  for (const reconciler::PodlessAttempt& one : podless) open.insert(one.attempt);
  std::erase_if(attempts, [&](const auto& entry) {
    const auto& [number, attempt] = entry;
    return number <= status.attempt && open.count(number) == 0 && !attempt.creation &&
           !attempt.may_still_show(shown) && attempt.requests.unanswered_until <= now &&
           (attempt.requests.comes_no_more || !attempt.others_may_create(now));
  });
  std::erase_if(runs, [&](const auto& entry) { return begun.count(entry.first) == 0; });
}

void JobMemory::remember_highest(const reconciler::Status& status, std::int64_t attempt) {
  if (attempt - status.attempt <= reconciler::kMostAhead) {
    highest_attempt = std::max(highest_attempt, attempt);
  }
}

bool JobMemory::creating() const {
  return std::any_of(attempts.begin(), attempts.end(),
                     [](const auto& entry) { return entry.second.creating(); });
}

bool JobMemory::has_creation() const {
  return std::any_of(attempts.begin(), attempts.end(),
                     [](const auto& entry) { return entry.second.creation.has_value(); });
}

void JobMemory::report_ended_creations() {
  for (auto& [number, attempt] : attempts) {
    if (attempt.creation && !attempt.creating()) attempt.creation->reported = true;
  }
}

void JobMemory::forget_ended_creations(const std::function<bool(const Creation&)>& which) {
  for (auto& [number, attempt] : attempts) {
    const bool has_ended = attempt.creation && !attempt.creating();
    if (has_ended && which(*attempt.creation)) attempt.creation.reset();
  }
}

const AttemptMemory* JobMemory::find_attempt(std::int64_t number) const {
  const auto found = attempts.find(number);
  return found == attempts.end() ? nullptr : &found->second;
}

AttemptMemory* JobMemory::find_attempt(std::int64_t number) {
  const auto found = attempts.find(number);
  return found == attempts.end() ? nullptr : &found->second;
}

}  // namespace holdfast::jobs
