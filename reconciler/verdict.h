// What the end of a pod means for its attempt.
#pragma once

#include <cstdint>
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
// SIGKILL (143, 137). So it is, too, where nobody knows t any more.
Verdict judge_ended_pod(const PodView& pod);

// The verdict on a pod that has not ended while its worker has fenced itself: it can only fail, and
// its other containers need not end. None: its worker has not.
std::optional<Verdict> judge_fenced_worker(const PodView& pod);

// When the deletion of a job's latest pod was asked for first. A later deletion, the kubelet's own
// when all is over or one with a shorter grace, takes the place of that time in the pod
// (BeforeDelete in k8s.io/apiserver), so a process keeps it while it can be seen.
class FirstDeletion {
 public:
  void see(const PodView& pod);
  std::optional<Time> asked(const PodView& pod) const;

 private:
  std::int64_t attempt_ = 0;
  std::string pod_uid_;
  Time asked_{};
};

}  // namespace holdfast::reconciler
