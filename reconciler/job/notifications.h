// The job's outbox: events for the targets in spec.notify. The write that changes the job also puts
// the event into the outbox, so that no crash can lose it. Internal to reconciler/.
#pragma once

#include "reconciler/job/phases.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// Called on each status write. It adds the events of its changes to the outbox. It removes each
// event that every target has taken or will never get. The condition NotificationFailed reports
// what is lost.
void keep_outbox(const Context& context, WriteStatus& write);

// Plans a write if the outbox changes and no other write is planned, and looks again when a target
// is given up. Called after all else has been decided.
void decide_outbox(const Context& context, Plan& plan);

// Plans the removal of kOutboxFinalizer, once it need not hold the job any more. True: it still
// holds a job that is being deleted, so nobody else deletes the job's pods.
bool hold_for_outbox(const Context& context, Plan& plan);

}  // namespace holdfast::reconciler
