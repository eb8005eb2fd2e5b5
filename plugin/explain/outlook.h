// What comes of a job's runs that are between two attempts. The status alone does not say it: it
// keeps the words of a wait until the operator has acted on the job's end, on a request in the
// spec, or on a deadline.
//
//   const Outlook outlook = outlook_of(object, read_job(object), now);
//   if (outlook != Outlook::kNextAttempt) ...  // nothing may promise another attempt
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"
#include "plugin/base/job_text.h"

namespace holdfast::plugin {

enum class Outlook {
  kNextAttempt,    // each starts its next one
  kStopped,        // none does: the outcome of the job or stage is decided, or it was cancelled
  kSuspended,      // none does before a resume
  kToBeCancelled,  // the spec asks for it, and the operator has not acted on it
  kToBeSuspended,
  kToBeResumed,
  kOutOfTime,  // the job's or the stage's time is over before any of them starts
};

Outlook outlook_of(const Json& object, const JobText& job, Time now);

// Pods may be being stopped: the page names all that live.
inline bool stops_pods(Outlook outlook) {
  return outlook == Outlook::kStopped || outlook == Outlook::kSuspended;
}

struct ActiveDeadline {
  std::string name;  // "stage deadline"
  Time at{};
};
// Those of the job and of its current stage that count.
std::vector<ActiveDeadline> active_deadlines(const Json& object, const JobText& job);
// The first of them.
std::optional<Time> first_deadline(const Json& object, const JobText& job);

// The seconds of a field of a spec or a Lease, if the schema allows them.
std::optional<std::chrono::seconds> seconds_in(const Json& object, std::string_view key);

// The current stage; null: the job has none.
const StageText* current_stage(const JobText& job);

}  // namespace holdfast::plugin
