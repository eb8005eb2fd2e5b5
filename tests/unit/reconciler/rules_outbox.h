// The rules on a job's outbox: S23 Told.
#pragma once

#include <string>

#include "reconciler/job/decide.h"

namespace holdfast::reconciler::testing {

// Why the API server would refuse this outbox; empty: it would accept it.
std::string refused_outbox(const Status& old, const Status& next);

// An event that this change of the status makes true and does not put into the outbox. Or an entry
// that leaves without a reason. Empty: none.
std::string outbox_trouble(const JobView& view, const Status& next, Time now);

}  // namespace holdfast::reconciler::testing
