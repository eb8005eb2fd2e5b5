// batch/v1's successPolicy: when some runs are enough for the job. Pure.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy
//
//   if (const auto met = match_success_policy(job.spec, status.completed)) succeed(*met);
#pragma once

#include <optional>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The first rule that the completed runs meet, in batch/v1's words: "Matched rules at index 0".
// None: they meet no rule.
//
// A rule with indexes alone needs each of them. A rule with a count alone needs so many runs. A
// rule with both needs so many of these indexes, or each of them.
//
// Without a completed run no rule is met. Neither is a rule with an empty list of indexes.
std::optional<std::string> match_success_policy(const Spec& spec, const IndexSet& completed);

}  // namespace holdfast::reconciler
