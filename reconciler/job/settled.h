// When a job that has ended is settled, so that no replica watches it any more. What still concerns
// it leads back to it then: a pod, a Lease, the batch/v1 Job that it runs, and the walk that finds whose time to live is over
// (operator/jobs/finished_jobs.h). Pure.
#pragma once

#include "reconciler/observed.h"

namespace holdfast::reconciler {

// A write of this status of the job may settle it: its targets have its events, no finalizer of
// ours holds it, and the batch/v1 Job that it runs reports its end or leads back to it.
bool may_settle(const JobView& view, const Status& status);

// The job could be settled, and is not.
bool lacks_settled(const JobView& view);

// It is settled, has no pod that lives or has our finalizer, and no Lease, and the batch/v1 Job that
// it runs reports its end.
bool is_at_rest(const JobView& view);

}  // namespace holdfast::reconciler
