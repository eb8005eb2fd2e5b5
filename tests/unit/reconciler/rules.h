// The rules for all writes: the CRD's rules on a status, and the shape of every decision for any
// view.
#pragma once

#include <string>

#include "reconciler/job/decide.h"

namespace holdfast::reconciler::testing {

// Why the API server would refuse this status; empty: it would accept it.
std::string refused_by_api(const Status& old, const Status& next);

// The rule that this decision breaks; empty: none.
std::string broken_by(const JobView& view, const Decision& decision, Time now);

// The run with this index; null: it is not in status.runs.
const Run* run_at(const Status& status, std::int64_t index);

// True: the status has the condition, and it is True.
bool is_true(const Status& status, const char* condition);

// The job starts nothing, because a user has suspended or paused it, or its pool does not exist.
bool rests(const Spec& spec, const Status& status, bool no_pool);

// What the job's podFailurePolicy says of this pod.
PolicyAction policy_on(const Spec& spec, const PodView& pod);

}  // namespace holdfast::reconciler::testing
