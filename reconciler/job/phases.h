// One function for each kind of phase. Each fills the decision; decide() picks one and completes
// its result. Internal to reconciler/.
#pragma once

#include "reconciler/job/opening.h"
#include "reconciler/job/plan.h"

namespace holdfast::reconciler {

// The phase of a job that goes on, while no run of it is open.
Phase idle_phase(const Spec& spec, const Status& status);
// The phase of a job that goes on.
void settle_phase(const Context& context, Status& status);

// (none), Pending, Running, Backoff: runs may be open, and may open.
void decide_active(const Context& context, Plan& plan);
void decide_suspended(const Context& context, Plan& plan);
void decide_cancelling(const Context& context, Plan& plan);
void decide_finished(const Context& context, Plan& plan);

// The status as it is, with the generation that this decision has seen.
WriteStatus start_write(const Context& context);
// If no attempt runs, a cancel, an overspent budget or the job's own time ends the job. True: it
// has.
bool end_idle(const Context& context, Plan& plan);
// Nothing opened: reports what it waits for, and looks again in time.
void wait_to_open(const Context& context, const Opening& opening, Plan& plan);
// podReplacementPolicy Failed: an old pod must have ended first, wherever it is.
void wait_for_old_pod(const Context& context, Plan& plan);

}  // namespace holdfast::reconciler
