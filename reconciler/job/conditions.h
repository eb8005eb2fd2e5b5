// The conditions of a job's status. Internal to reconciler/.
#pragma once

#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now);
// Sets the condition to false if it is true.
void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now);

}  // namespace holdfast::reconciler
