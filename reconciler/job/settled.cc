#include "reconciler/job/settled.h"

#include <algorithm>

namespace holdfast::reconciler {

bool may_settle(const JobView& view, const Status& status) {
  return is_terminal(status.phase) && status.outbox.empty() && !view.job.holds_outbox &&
         view.observed.settling != Settling::kNotYet;
}

bool lacks_settled(const JobView& view) {
  return !view.job.status.settled && may_settle(view, view.job.status);
}

bool is_at_rest(const JobView& view) {
  if (!view.job.status.settled || !may_settle(view, view.job.status)) return false;
  if (!view.observed.mirrored) return false;
  const bool has_pod = std::any_of(view.pods.begin(), view.pods.end(), [](const PodView& pod) {
    return !pod.slot && (!pod.ended() || pod.has_finalizer);
  });
  return !has_pod && view.leases_over.empty() && view.observed.creations.empty();
}

}  // namespace holdfast::reconciler
