#include "api/status.h"

#include <algorithm>
#include <chrono>

namespace holdfast::api {

void Condition::set(bool holds, const std::string& why, const std::string& text, Time now) {
  if (status != holds || unknown) last_transition_time = std::chrono::floor<seconds>(now);
  status = holds;
  unknown = false;
  observed_generation.reset();
  reason = why;
  message = text;
}

Condition& own_condition(std::vector<Condition>& all, const char* type, bool holds, Time now) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Condition& one) { return one.type == type; });
  if (found != all.end()) return *found;
  if (all.size() >= kConditionLimit) all.resize(kConditionLimit - 1);
  return all.emplace_back(Condition{type, !holds, "", "", now});
}

const Run& Status::run() const {
  static const Run kNone;
  return runs.empty() ? kNone : runs.front();
}

Run& Status::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
}

bool Status::has_open_run() const {
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.open(); });
}

bool Status::says_queued() const {
  return waiting &&
         (waiting->reason == Reason::kQueued || waiting->reason == Reason::kQueueMissing);
}

const Run* Status::run_of_pod(const std::string& pod_name) const {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& one) { return one.pod_name == pod_name; });
  return found == runs.end() ? nullptr : &*found;
}

bool Status::holds(const std::string& type) const {
  const Condition* const found = condition(type);
  return found && found->status;
}

std::int64_t Status::stage_failures() const {
  return stages.empty() ? failures : stages[stage].failures;
}

std::int64_t Status::stage_disruptions() const {
  return stages.empty() ? disruptions : stages[stage].disruptions;
}

const Condition* Status::condition(const std::string& type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

}  // namespace holdfast::api
