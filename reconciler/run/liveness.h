// Verdicts by time on a pod that has not ended, and what the job waits for until then. Internal to
// reconciler/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/run/context.h"
#include "reconciler/run/verdict.h"

namespace holdfast::reconciler {

// One limit that may end the attempt by time.
struct Limit {
  Verdict verdict;          // when the limit is reached
  Duration left{0};         // the time until then; zero or less: now
  Duration trouble_for{0};  // how long the trouble has lasted
  // Normal so far, so do not report it yet.
  bool quiet = false;
  // Decide again after this time, before the limit; none: no need.
  std::optional<Duration> look_in = std::nullopt;
};

// How much longer to wait for a scheduler's first report on this pod. After that a human must help.
Duration unseen_left(const RunContext& context, const PodView& pod);

// "40 s", for humans.
std::string in_seconds(Duration duration);

// "; container main: ErrImagePull: no such image", for a message. It is the kubelet's text on a
// container in trouble, else on a waiting container. Empty: no container says why.
std::string why_not_started(const PodView& pod);
// The same for anything that keeps the attempt from running: a refused pod, a pod without a node, a
// container that does not start. Empty: nothing is known.
std::string why_not_running(const RunContext& context);

// All limits that run against this pod, unordered.
std::vector<Limit> limits_on(const RunContext& context, const PodView& pod);

// How long a node may be silent before the attempts on it are lost.
Duration silent_node_window(const Context& context, const NodeObservation& node);

// The time until a deleted pod has exceeded its grace + lostAfterSeconds; none: it is not deleted.
std::optional<Duration> overstay_left(const Context& context, const PodView& pod);

// What the attempt waits for while its pod lives.
Waiting describe(const RunContext& context, const PodView& pod, const std::vector<Limit>& limits);

}  // namespace holdfast::reconciler
