// batch/v1 Jobs that another controller runs (spec.managedBy): what the API server fills into them,
// and which specs, changes and statuses it refuses. Pure. As far as Holdfast and its users can see:
// no other Job is created here.
#pragma once

#include <string>

#include "core/json.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

void prepare_batch_job(Json& job);

// `old` is null for a create.
Causes validate_batch_job(const Json& job, const Json* old, const std::string& subresource);

}  // namespace holdfast::simulation
