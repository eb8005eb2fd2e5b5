// The parts of a Lease's duration D, for every agent that holds one. What counts "after" counts
// from when the last acknowledged renewal was SENT.
#pragma once

#include <algorithm>

#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

inline constexpr Duration kPoll = std::chrono::seconds(1);  // while it waits for the Lease
inline constexpr double kPollJitter = 0.2;
inline constexpr Duration kLongestRetry = std::chrono::seconds(1);
inline constexpr double kRetryJitter = 0.1;
inline constexpr double kRenewalJitter = 0.1;
// A pause that the API server asks for leaves this much before an end.
inline constexpr Duration kLastTry = std::chrono::seconds(1);
// The limit of the last words when no process is left. They decide whether the attempt was lost or
// failed.
inline constexpr Duration kLastWordsLimit = std::chrono::seconds(2);
// How often SIGKILL is repeated until all processes are gone: they may have forked meanwhile.
inline constexpr Duration kKillAgain = std::chrono::milliseconds(50);

// A pod's end, if the API server does not say it: so long after SIGTERM, or as long as its template
// allows. A kubelet that shuts down or evicts does not report how long it waits.
inline constexpr Duration kAssumedGrace = std::chrono::seconds(30);
// Everything is dead so long before the pod's end: what became of the commands is still to be
// reported.
inline constexpr Duration kBeforeEnd = std::chrono::seconds(1);
// The operator says the real end within a second or so. Nothing is stopped for an assumed one
// before that, or commands would lose a long grace to a guess.
constexpr Duration mark_wait(Duration assumed) {
  return std::min<Duration>(std::chrono::seconds(2), assumed / 5);
}

constexpr Duration terminate_after(Duration duration) { return duration * 2 / 3; }
// A sixtieth before 5/6 D, when everything must be dead: a busy machine needs some time.
constexpr Duration kill_after(Duration duration) { return duration * 49 / 60; }
// After a refusal everything is dead within D/6, with the same reserve. A refusal comes before 2/3
// D, so this is never later than the kill above.
constexpr Duration grace(Duration duration) { return duration * 9 / 60; }
// After the first SIGKILL: half of that reserve. So the agent, too, has ended by 5/6 D, even if a
// process did not die. With the shortest Lease (10 s), three kills take longer than that, but they
// also fit.
constexpr Duration kill_limit(Duration duration) {
  return std::max(duration / 120, 2 * kKillAgain);
}
// The limit of the last words while processes may live that only the agent's end kills: until 5/6
// D.
constexpr Duration hurried_words(Duration duration) { return duration / 200; }
// As long as a kubelet lets a renewal hang. A restarted operator depends on it: earlier silence
// counts only after it has watched for longer than this (kFirstLook in reconciler).
inline constexpr Duration kLongestRequest = std::chrono::seconds(10);
constexpr Duration request_limit(Duration duration) {
  return std::min(duration / 6, kLongestRequest);
}
constexpr Duration retry_pause(Duration duration) { return std::min(duration / 30, kLongestRetry); }
// Progress is reported this long after the last renewal, not at once, because it may be very
// frequent.
constexpr Duration progress_pause(Duration duration) { return duration / 10; }
// How often the worker's files are looked at, with one stat() each.
constexpr Duration look_period(Duration duration) {
  return std::clamp<Duration>(duration / 30, std::chrono::milliseconds(50),
                              std::chrono::seconds(1));
}
// A worker may wait until its checkpoint is kept.
constexpr Duration checkpoint_pause(Duration duration) {
  return std::min<Duration>(progress_pause(duration), std::chrono::seconds(1));
}

// The duration plus or minus up to `part` of it.
inline Duration about(Random& random, Duration duration, double part) {
  return duration +
         std::chrono::duration_cast<Duration>(duration * part * (2 * random.uniform() - 1));
}
// Up to `part` of the duration.
inline Duration up_to(Random& random, Duration duration, double part) {
  return std::chrono::duration_cast<Duration>(duration * part * random.uniform());
}

}  // namespace holdfast::agent
