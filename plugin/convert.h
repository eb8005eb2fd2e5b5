// `convert`: a DurableJob from a batch/v1 Job or CronJob, and what differs. Pure.
//
// docs/install.md ("From a batch/v1 Job") and docs/many-runs.md say the same for people who convert
// by hand.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace holdfast::plugin {

struct Conversion {
  Json job;  // null: there are errors
  // What differs and why, one line each.
  std::vector<std::string> notes;
  // What no DurableJob can say, and what to do instead, one line each.
  std::vector<std::string> errors;
};

// The object as in a manifest, or as the API server returns it: what the server has filled in is
// dropped.
Conversion convert(const Json& object);

}  // namespace holdfast::plugin
