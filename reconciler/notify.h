// What a job reports to the targets in spec.notify, and how far that is: docs/notifications.md.
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconciler/api.h"

namespace holdfast::reconciler {

// A target that still fails so long after the event is given up.
inline constexpr std::chrono::seconds kNotifyFor = std::chrono::hours(72);
// The pauses between two tries: the first one, and the longest one, also if the target asks for a
// longer one.
inline constexpr std::chrono::seconds kShortestNotifyPause{5};
inline constexpr std::chrono::seconds kLongestNotifyPause = std::chrono::hours(6);
// A pause is 80 % to 120 % of its length, so that what failed together does not come back together.
inline constexpr int kNotifyPauseSpreadPercent = 20;
// If an event's turn has not come for this long, the event is given up without a try. Many events
// may wait for a target that asks for pauses, and `ttlSecondsAfterFinished` waits for them.
inline constexpr std::chrono::seconds kNotifyAtMost = kNotifyFor + kLongestNotifyPause;
// A process that has lived for less has perhaps tried nothing yet: it gives up nothing untried.
inline constexpr std::chrono::minutes kFirstTryWithin{10};
// A target that the operator does not know, or that the namespace may not use, is given up after
// this time. The time counts from the event, or from when the status first says so if that is
// later. It is no shorter, because after a change of the configuration not all replicas have it at
// once.
inline constexpr std::chrono::seconds kUnknownTargetFor = std::chrono::minutes(10);

// How long a target that asks for a pause (Retry-After) gets no message at all.
Duration obeyed_pause(Duration asked);

// After a try that failed: how long until the next one of this event. It is about the event's age.
// So it doubles like any back-off, and a restart needs no record of earlier tries. The `draw` is
// from 0 to 1. The pause `obeyed` is from obeyed_pause(); none: the target asked for nothing.
Duration next_notify_pause(Duration age, double draw, std::optional<Duration> obeyed);

// The try may have been the last one: a target that fails now is given up.
bool notifies_no_longer(Duration age);

// A target, as the operator's configuration has it.
struct TargetView {
  enum class State { kKnown, kUnknown, kForbidden };
  State state = State::kUnknown;
  std::vector<NotifyEvent> events;  // of kKnown: those that it takes

  // An unknown target wants all events, because the operator may come to know it.
  bool wants(NotifyEvent event) const;
};

// How the delivery of an event to a target went, as this process knows.
struct DeliveryView {
  enum class Result {
    kTaken,    // the target has taken it
    kRefused,  // it never will
    kFailing,  // the last try failed
  };
  std::int64_t number = 0;
  std::string target;
  Result result = Result::kFailing;
  std::string why;  // it failed: what tenants may read, without the target's address
};

// Of a job with `notify` or an outbox.
struct NotifyView {
  std::map<std::string, TargetView> targets;  // those of the job and of its outbox
  std::vector<DeliveryView> deliveries;
};

}  // namespace holdfast::reconciler
