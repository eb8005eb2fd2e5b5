// What the end of a pod means for its attempt.
#pragma once

#include <optional>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

struct Verdict {
  Outcome outcome = Outcome::kFailed;
  AnyReason reason;  // CamelCase; a kubelet's too, e.g. "OOMKilled", "Evicted"
  std::string message;
  std::optional<int> exit_code;                   // of the container that decided
  std::optional<Time> ended;                      // when it ended, as the kubelet says
  OrphanClass orphan_class = OrphanClass::kNone;  // set for Lost
};

// The verdict on a pod whose phase is Succeeded or Failed. A Failed pod that was deleted, too: what
// this process saw first counts, and no clock. Where it saw neither first, a container that ended
// after the second in which the deletion was asked for (deletionTimestamp -
// deletionGracePeriodSeconds) was lost. One that ended before it failed by itself, unless it died
// of SIGTERM or SIGKILL (143, 137) and the clocks of node and API server may differ by so much.
Verdict judge_ended_pod(const PodView& pod, EndOrder order = EndOrder::kUnknown);

// A container has ended badly, or the pod has.
bool has_failed(const PodView& pod);

// The verdict on a pod that has not ended while its worker has fenced itself: it can only fail, and
// its other containers need not end. None: its worker has not.
std::optional<Verdict> judge_fenced_worker(const PodView& pod);

}  // namespace holdfast::reconciler
