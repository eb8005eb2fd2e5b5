// The job of a random history: half of them have one run, the others two to eight. Some have a
// queue, some a pool of warm workers.
#pragma once

#include "reconciler/types.h"
#include "tests/unit/reconciler/rng.h"

namespace holdfast::reconciler::testing {

Job random_job(Rng& rng, Time now);

}  // namespace holdfast::reconciler::testing
