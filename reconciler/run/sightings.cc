#include "reconciler/run/sightings.h"

#include "reconciler/run/verdict.h"

namespace holdfast::reconciler {

void Sightings::see(const PodView& pod, Time now) {
  const bool is_new = pod.uid != uid_;
  if (is_new ? pod.attempt < attempt_ : pod.version < version_) return;
  if (is_new) {
    attempt_ = pod.attempt;
    uid_ = pod.uid;
    seen_ = {};
  }
  if (!seen_.placed || placement_ != pod.placement()) {
    if (seen_.placed) seen_.elsewhere = last_;
    seen_.placed = now;
  }
  version_ = pod.version;
  placement_ = pod.placement();
  last_ = now;
  // A kubelet may take back that the pod has started.
  if (!pod.started() && !seen_.started) seen_.unstarted = now;
  if (!seen_.started && pod.started()) seen_.started = now;
  if (seen_.order != EndOrder::kUnknown) return;
  const bool failed = has_failed(pod);
  if (!pod.deletion && failed) seen_.order = EndOrder::kFailedFirst;
  if (pod.deletion && !failed && !pod.ended()) seen_.order = EndOrder::kDeletedFirst;
}

PodSightings Sightings::of(const PodView& pod) const {
  return !uid_.empty() && pod.uid == uid_ ? seen_ : PodSightings{};
}

}  // namespace holdfast::reconciler
