// What every status write carries for those who read many kinds: kstatus (Helm, Flux, kpt), Argo
// CD. They read in progress, done or failed from the conditions Reconciling and Stalled, of which
// kstatus takes the first that is true; so Stalled stands first. Internal to reconciler/.
#pragma once

#include "reconciler/types.h"

namespace holdfast::reconciler {

// Reconciling is true while the job is neither over nor suspended.
void tell_kstatus(Status& status, Time now);

}  // namespace holdfast::reconciler
