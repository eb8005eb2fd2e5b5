// What the end of a pod means for its attempt.
#pragma once

#include <optional>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

struct Verdict {
  Outcome outcome = Outcome::kFailed;
  std::string reason;  // CamelCase, e.g. "Error", "OOMKilled", "Evicted"
  std::string message;
  std::optional<int> exit_code;  // of the container that decided
  std::optional<Time> ended;     // when it ended, as the kubelet says
  std::string orphan_class;      // set for Lost
};

// The verdict on a pod whose phase is Succeeded or Failed. A Failed pod whose deletion was asked
// for at t (deletionTimestamp - deletionGracePeriodSeconds): a container that ended before that
// second failed by itself; after it, it was lost; in it, it failed unless it died of SIGTERM or
// SIGKILL (143, 137).
Verdict judge_ended_pod(const PodView& pod);

}  // namespace holdfast::reconciler
