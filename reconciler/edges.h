// The edges of the job's state machine: each function takes the status as it stands and makes the
// next one, and is the only place where its edge is made. Internal to reconciler/.
#pragma once

#include <optional>
#include <string>

#include "reconciler/decide.h"
#include "reconciler/types.h"
#include "reconciler/verdict.h"

namespace holdfast::reconciler {

// What all edges know.
struct Context {
  const JobView& view;
  const Job& job;
  const Spec& spec;
  Time now;
};

// The end of the current attempt, as it goes into history and budgets.
struct AttemptEnd {
  Verdict verdict;
  Duration trouble_for{0};
};

// A pod of the job still runs, or may: it is not terminal, and neither unbound and deleted nor on a
// node whose object is gone.
bool any_pod_lives(const Context& context);
bool pod_lives(const Context& context, const PodView& pod);

inline constexpr const char* kJobDeadlineMessage =
    "the job was active longer than activeDeadlineSeconds";

// Starts the next attempt: (any) -> Running.
void start_attempt(const Context& context, Status& status);

// Ends the current attempt and goes where spec and budgets say: Running -> Running, Backoff,
// Suspended, Cancelling, Succeeded, Failed.
WriteStatus end_attempt(const Context& context, const AttemptEnd& end);

// -> Failed, Cancelled, Suspended, Cancelling, Pending. No attempt runs (any more).
void finish_failed(const Context& context, Status& status, Reason reason,
                   const std::string& message);
void finish_cancelled(const Context& context, Status& status);
void suspend(const Context& context, Status& status);
void start_cancelling(const Context& context, Status& status);
void resume(const Context& context, Status& status);

// The budget that is overspent, as a reason and message for finish_failed; none: neither.
std::optional<std::pair<Reason, std::string>> spent_budget(const Spec& spec, const Status& status);

// What a job in Backoff waits for while podReplacementPolicy Failed holds it back.
Waiting old_pod_waiting(const Context& context);

// What a job waits for that may start its next attempt, and may not ask for its pod yet.
Waiting turn_waiting(const Context& context, const Status& status);

// Time was to act by then, as the status says, and has not.
bool told_deadline_has_passed(const Context& context);

// Texts of others (schedulers, webhooks, kubelets) are cut to what the schema takes, and less: a
// message must never keep a status from being written.
void keep_within_schema(Waiting& waiting);
void keep_within_schema(WriteStatus& write);

void set_condition(Status& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now);
// Sets it to false if it stands there as true.
void clear_condition(Status& status, const std::string& type, const std::string& reason, Time now);

}  // namespace holdfast::reconciler
