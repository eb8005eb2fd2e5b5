// What the end of an attempt changes: its run, budgets, history and Events. Internal to
// reconciler/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/run/running.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// An attempt that has just ended, and its run as it was at its end.
struct AttemptsEnd {
  Run run;
  Verdict verdict;
  HistoryEntry entry;
  int lost_together = 0;  // its next attempt is delayed, because an outage lost so many; or zero
  // A rule of the failure policy fails the whole job, and this is why.
  struct Failure {
    Reason reason;
    std::string message;
  };
  std::optional<Failure> fails_job = std::nullopt;
};

// Ends the run's attempt: budgets, and when the next one may start. A run that has succeeded, or
// has failed for good, is no longer in status.runs. But the record alone says where an attempt on
// a worker may still run, so its run stays until that place is empty.
AttemptsEnd end_attempt(const RunContext& context, const AttemptEnd& end, WriteStatus& write);

// True if a run that waits has spent more than its own budget allows. Then its limit was lowered,
// or its last attempt has now left its worker. Only with backoffLimitPerIndex (otherwise the job
// itself fails), and not in a job that is being cancelled.
bool has_overspent_run(const Context& context);
// These runs have failed. They spend nothing more. An Event names the last of them.
void fail_overspent_runs(const Context& context, WriteStatus& write);

// Adds the ended attempts to history. One write adds kHistoryLimit - 1 at most, because no write
// may drop the newest entry. Attempts that ended badly come first.
void record_ends(const std::vector<AttemptsEnd>& ends, Status& status);

// The Events of attempts' ends: one of each, or one of all. Call it when the next phase is known.
void report_ends(const Spec& spec, const std::vector<AttemptsEnd>& ends, WriteStatus& write);

}  // namespace holdfast::reconciler
