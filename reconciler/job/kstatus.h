// The conditions Reconciling and Stalled. From them, tools for many kinds read the job's progress:
// kstatus (Helm, Flux, kpt), Argo CD. Stalled comes first, because kstatus uses the first that is
// true. Internal to reconciler/.
#pragma once

#include "reconciler/types.h"

namespace holdfast::reconciler {

// Reconciling is true while the job is neither over nor suspended.
void report_kstatus(Status& status, Time now);

}  // namespace holdfast::reconciler
