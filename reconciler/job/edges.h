// The edges of the job's state machine. Each function changes the status to the next one, and
// nothing else makes its edge. Internal to reconciler/.
#pragma once

#include <optional>
#include <string>

#include "reconciler/run/running.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// True if a pod of the job may still run.
bool any_pod_lives(const Context& context);

// Starts the run's next attempt: (any) -> Running. `run` is one of status.runs.
void start_attempt(const Context& context, Status& status, Run& run);

// An attempt that has just ended, and its run as it was at its end.
struct AttemptsEnd {
  Run run;
  Verdict verdict;
  int lost_together = 0;  // its next attempt is delayed, because an outage lost so many; or zero
};

// Ends the run's attempt: history, budgets, and when the next one may start. A run that has
// succeeded is no longer in status.runs.
AttemptsEnd end_attempt(const RunContext& context, const AttemptEnd& end, WriteStatus& write);

// The job after its last open run has ended, if it starts nothing more: -> Succeeded, Failed,
// Cancelling, Suspended. False: it goes on.
bool conclude(const Context& context, const AttemptsEnd& last, Status& status);

// The Event of an attempt's end. Call it when the job's next phase is known.
void tell_of_end(const AttemptsEnd& end, WriteStatus& write);

// What a job in Backoff waits for until this run's next attempt.
Waiting next_attempt_waiting(const Context& context, const Status& status, const Run& run,
                             int lost_together);

// -> Failed, Cancelled, Suspended, Cancelling, Pending. No attempt runs after these.
void finish_failed(const Context& context, Status& status, Reason reason,
                   const std::string& message);
void finish_cancelled(const Context& context, Status& status);
void suspend(const Context& context, Status& status);
void start_cancelling(const Context& context, Status& status);
void resume(const Context& context, Status& status);

// The budget that is overspent, as a reason and message for finish_failed; none: neither.
std::optional<std::pair<Reason, std::string>> spent_budget(const Spec& spec, const Status& status);

// What a job in Backoff waits for because of podReplacementPolicy Failed.
Waiting old_pod_waiting(const Context& context);

// The job may start its next attempt, but must wait for its turn to create the pod.
Waiting turn_waiting(const Context& context, const Status& status);

// Cuts texts of schedulers, webhooks and kubelets to less than the schema's limits, and drops
// conditions of other programs that leave ours no room. Neither must make a status write fail.
void keep_within_schema(Waiting& waiting);
void keep_within_schema(WriteStatus& write);

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now);
// Sets the condition to false if it is true.
void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now);

}  // namespace holdfast::reconciler
