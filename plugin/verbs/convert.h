// `convert`: a DurableJob from a batch/v1 Job or CronJob, and what differs. Pure.
//
// docs/migrate.md says the same for people who convert by hand.
#pragma once

#include "core/json.h"
#include "lane/mapping.h"

namespace holdfast::plugin {

struct Conversion : lane::Differences {
  Json job;  // null: there are errors
};

// The object as in a manifest, or as the API server returns it: what the server has filled in is
// dropped.
Conversion convert(const Json& object);

}  // namespace holdfast::plugin
