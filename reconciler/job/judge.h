// Why a stage of a job ends. A job without stages is one whose only stage is the job. Internal to
// reconciler/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/job/attempt_ends.h"
#include "reconciler/run/context.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

struct JobEnd {
  bool succeeds = false;
  std::string reason;
  std::string message;
  enum class Cause { kItsOwn, kJobDeadline, kCancel };
  Cause cause = Cause::kItsOwn;
};

// Why the current stage ends now, after these attempts have ended. None: it goes on. Failure comes
// before success, and a success before the end of its time, however late it is read.
std::optional<JobEnd> judge_job(const Context& context, const std::vector<AttemptsEnd>& ends,
                                const Status& status);

// The budget that is overspent; none: neither.
std::optional<JobEnd> spent_budget(const Spec& spec, const Status& status);
// More runs have failed than spec.maxFailedIndexes allows.
bool has_too_many_failed(const Spec& spec, const Status& status);

}  // namespace holdfast::reconciler
