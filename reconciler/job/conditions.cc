#include "reconciler/job/conditions.h"

#include "reconciler/job/status_limits.h"

namespace holdfast::reconciler {

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now) {
  Condition* found = nullptr;
  for (Condition& condition : status.conditions) {
    if (condition.type == type) found = &condition;
  }
  if (!found) {
    // kstatus uses the first that is true, and a job that needs a human is not in progress.
    const auto before = type == "Stalled" ? status.conditions.begin() : status.conditions.end();
    found = &*status.conditions.insert(before, Condition{type, !value, "", "", now});
  }
  found->set(value, reason, bounded(message), now);
}

void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now) {
  const Condition* const condition = status.condition(type);
  if (condition && condition->status) set_condition(status, type, false, reason, "", now);
}

}  // namespace holdfast::reconciler
