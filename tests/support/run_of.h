// The run in the status of a job with one run; null: it has not begun, or has ended.
#pragma once

#include "core/json.h"

namespace holdfast {

inline const Json& run_of(const Json& status) {
  static const Json kNone;
  const Json& runs = at(status, "runs");
  return runs.is_array() && !runs.empty() ? runs[0] : kNone;
}

}  // namespace holdfast
