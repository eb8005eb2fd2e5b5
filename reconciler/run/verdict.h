// The meaning of a pod's end for its attempt.
#pragma once

#include <optional>
#include <string>

#include "reconciler/orphan_class.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

// What a container exits with that a signal ended.
inline constexpr int kSigkillExit = 128 + 9;
inline constexpr int kSigtermExit = 128 + 15;

struct Verdict {
  Outcome outcome = Outcome::kFailed;
  AnyReason reason;              // CamelCase; a kubelet's too, e.g. "OOMKilled", "Evicted"
  std::string message;           // in one line
  std::string output;            // the last lines of the deciding container
  std::optional<int> exit_code;  // of the deciding container
  std::optional<Time> ended;     // when it ended, by the kubelet's clock
  OrphanClass orphan_class = OrphanClass::kNone;  // set for Lost
};

Verdict verdict_of(Outcome outcome, Reason reason, std::string message,
                   OrphanClass orphan_class = OrphanClass::kNone);

// The verdict's message with its output, in one line, for Events and conditions.
std::string in_one_line(const Verdict& verdict);

// The verdict on a pod whose phase is Succeeded or Failed. If a Failed pod was also deleted, the
// event that this process saw first decides, without any clock. If it saw neither first, the
// kubelet's times decide, to the second. The deletion was asked for at deletionTimestamp -
// deletionGracePeriodSeconds. A container that ended later was lost. A container that ended earlier
// failed by itself, with one exception: SIGTERM or SIGKILL (143, 137), if the clocks of node and
// API server may differ by so much.
//
// `has_run`: a container of it was seen to run, also if its kubelet reports none any more. Nobody
// saw how such a container ended, so the attempt is lost.
Verdict judge_ended_pod(const PodView& pod, EndOrder order = EndOrder::kUnknown,
                        bool has_run = false);

// A container has ended badly, or the pod has.
bool has_failed(const PodView& pod);

// The container is the worker, and its agent ended it because the Lease was lost
// (docs/internals/heartbeat.md). The exit code is then the agent's.
bool fenced_itself(const ContainerView& container);

// The verdict on a pod whose worker has fenced itself before the pod's end. Such a pod can only
// fail, so its other containers need not end. None: its worker has not fenced itself.
std::optional<Verdict> judge_fenced_worker(const PodView& pod);

}  // namespace holdfast::reconciler
