// The status of a batch/v1 Job, as the API server's validation demands it of a controller that
// spec.managedBy names: KEP-4368, and ValidateJobStatusUpdate of Kubernetes. Pure.
//
//   startTime        set when the Job starts, or resumes; none while it is suspended
//   conditions       Suspended; SuccessCriteriaMet before Complete, FailureTarget before Failed, or
//                    in one write with it. None of these four is ever taken back
//   completionTime   of a Complete Job alone
//   active           0 once it has finished
//   succeeded,       never fall
//   failed
//   failedIndexes    only with backoffLimitPerIndex
//   ready            never more than `active`
//
// Of an Indexed Job with as many completions as parallelism, `succeeded` may fall.
//
// `terminating` and `uncountedTerminatedPods` are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"
#include "lane/batch_job.h"
#include "reconciler/types.h"

namespace holdfast::lane {

// How a Job ends.
struct End {
  bool succeeds = false;
  std::string reason;
  std::string message;
};

// The Job is suspended, and no pod of it runs.
void rest(Json& status, Time now);
// The Job is not suspended: it starts, or resumes.
void go_on(Json& status, Time now);
// Its outcome is decided. It cannot change any more.
void decide_end(Json& status, const End& end, Time now);
// No pod runs: it is over. `done`: when its work was.
void finish(Json& status, const End& end, Time done, Time now);
// Counts and indexes. `ready`: how many pods are; none: that is not known.
void count(const BatchJob& job, const reconciler::Job& durable, std::optional<std::int64_t> ready,
           Json& status);

// The condition ChangeRefused: fields that keep their old values in the DurableJob, and why.
void report_refusal(Json& status, const std::string& message, Time now);
void take_refusal_back(Json& status, Time now);
bool reports_refusal(const Json& status, const std::string& message);

// How this DurableJob ends or has ended; none: that is not decided.
std::optional<End> end_of(const reconciler::Job& durable);

}  // namespace holdfast::lane
