// Verdicts that time alone brings on a pod that has not ended, and what the job waits for until
// then. Internal to reconciler/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/edges.h"

namespace holdfast::reconciler {

// One thing that may end the attempt by time.
struct Limit {
  Verdict verdict;          // if it does
  Duration left{0};         // until then; zero or less: now
  Duration trouble_for{0};  // how long the trouble has lasted
  // Not worth telling yet: what it waits for happens all the time.
  bool quiet = false;
  // Look again by then, though it does not end the attempt yet; none: no need.
  std::optional<Duration> look_in = std::nullopt;
};

// How much longer a scheduler may take to say its first word of this pod; then a person is needed.
Duration unseen_left(const Context& context, const PodView& pod);

// "40 s", for people.
std::string in_seconds(Duration duration);

// "; container main: ErrImagePull", for a message; empty: no container says why.
std::string why_not_started(const PodView& pod);

// All limits that run against this pod, unordered.
std::vector<Limit> limits_on(const Context& context, const PodView& pod);

// When a pod that was told to go has overstayed its grace and lostAfterSeconds; none: it was not.
std::optional<Duration> overstay_left(const Context& context, const PodView& pod);

// What the attempt waits for while its pod lives.
Waiting describe(const Context& context, const PodView& pod, const std::vector<Limit>& limits);

}  // namespace holdfast::reconciler
