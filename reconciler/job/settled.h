// When a job that has ended is settled, so that no replica watches it any more. A pod, a Lease and
// the batch/v1 Job that it runs lead back to it then. A walk finds the jobs whose time to live is
// over (operator/jobs/finished_jobs.h). Pure.
#pragma once

#include "reconciler/observed.h"

namespace holdfast::reconciler {

// A write of this status of the job may settle it. Its targets have its events, and no finalizer of
// ours holds it. The batch/v1 Job that it runs reports its end or leads back to it.
bool may_settle(const JobView& view, const Status& status);

// The job could be settled, and is not.
bool lacks_settled(const JobView& view);

// It is settled, and has no Lease and no pod that lives or has our finalizer. The batch/v1 Job that it
// runs reports its end.
bool is_at_rest(const JobView& view);

}  // namespace holdfast::reconciler
