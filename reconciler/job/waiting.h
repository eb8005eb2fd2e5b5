// What a job says it waits for while no attempt of it runs, or all of many go on. Internal to
// reconciler/.
#pragma once

#include <string>

#include "reconciler/job/attempt_ends.h"
#include "reconciler/job/judge.h"
#include "reconciler/run/context.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

// podReplacementPolicy Failed: the last attempts still run, in pods or on workers, or their pods
// may still come.
Waiting old_pod_waiting(const Context& context);
Waiting creation_waiting(const Context& context, const OpenCreation& creation);

// The job may start its next attempt, but must wait for its turn to create the pod.
Waiting turn_waiting(const Context& context, const Status& status);

// Many runs are open, and each goes on by itself.
Waiting open_runs_waiting(const Context& context, Reason reason, std::string message);
// They have just begun, and nothing is known of them yet.
Waiting begun_waiting(const Context& context);

// The job's pool has no free slot, or there is no such pool.
Waiting worker_waiting(const Context& context, const Status& status);
// A run of the pool that needs a worker of its own.
Waiting empty_worker_waiting(const Context& context, const Status& status);

// The job's queue has not admitted it, or there is no such queue.
Waiting queue_waiting(const Context& context);

// spec.suspend is true.
Waiting suspended_waiting();
// spec.parallelism is 0.
Waiting paused_waiting(const Context& context);

// The run's next attempt waits its back-off. `end`: of its last one.
Waiting next_attempt_waiting(const Context& context, const Status& status, const AttemptsEnd& end,
                             const Run& run);
// All runs that have begun are in back-off. The first of them starts again then.
Waiting backoff_waiting(const Context& context, Time due);

// Nobody has decided anything about the job. As the schema's default status, this is read as no
// phase.
Waiting unseen_waiting();

// The job's end is on record.
Waiting stopping_waiting(const Context& context, const JobEnd& reached);

}  // namespace holdfast::reconciler
