// Pods that may still come, because a request for them has no known answer yet. A pod that is being
// created belongs to the job. So meanwhile the job does not end, and no stage begins. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// An attempt of whose pod the status knows nothing but the name. For a process that did not record
// it, this is all that is left of a request for the pod.
struct PodlessAttempt {
  std::int64_t attempt = 0;
  std::string pod_name;
  // Its end is on record since then: no request for its pod was sent later. None: it is open.
  std::optional<Time> closed = std::nullopt;
};
// Sorted by attempt. The list leaves out attempts that ended so long before `now` that no request
// for them can be left, unless they are in `runs`.
std::vector<PodlessAttempt> podless_attempts(const Status& status, Time now);

// This process is creating the attempt's pod, or will be shown it soon.
bool is_being_created(const JobView& view, std::int64_t attempt);

// A request for the attempt's pod that may still be applied, from this process or an earlier one.
// Null: no such request.
const OpenCreation* creation_of(const JobView& view, std::int64_t attempt);

// The last request of the job that may still be applied. Null: no such request.
const OpenCreation* last_creation(const JobView& view);

}  // namespace holdfast::reconciler
