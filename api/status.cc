#include "api/status.h"

#include <algorithm>

namespace holdfast::api {

const Run& Status::run() const {
  static const Run kNone;
  return runs.empty() ? kNone : runs.front();
}

Run& Status::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
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
