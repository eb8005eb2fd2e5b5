#include "operator/runtime/health.h"

namespace holdfast::runtime {
namespace {

// The server answers if its last answer is at most this old. A consistent read is made every few
// seconds.
constexpr Duration kAnsweredLately = std::chrono::minutes(1);

std::string stuck_reason(const WatchHealth& watch, bool server_answers) {
  if (watch.live && watch.quiet > Health::kWatchQuietLimit) {
    return "the watch of " + watch.kind + " is open, and silent for " + human_duration(watch.quiet);
  }
  if (!watch.live && server_answers && watch.live_age > Health::kWatchDownLimit) {
    return "the watch of " + watch.kind + " is closed for " + human_duration(watch.live_age) +
           " while the API server answers";
  }
  return "";
}

}  // namespace

void Health::beat(SteadyTime now, const std::vector<WatchHealth>& watches,
                  std::optional<SteadyTime> answered_at) {
  const bool server_answers = answered_at && now - *answered_at <= kAnsweredLately;
  std::string stuck;
  std::string unsynced;
  for (const WatchHealth& watch : watches) {
    if (stuck.empty()) stuck = stuck_reason(watch, server_answers);
    if (!watch.synced) unsynced += (unsynced.empty() ? "" : ", ") + watch.kind;
  }
  MutexLock lock(mutex_);
  beat_at_ = now;
  stuck_watch_ = std::move(stuck);
  not_ready_ = watches.empty() ? "starting" : unsynced.empty() ? "" : "not yet synced: " + unsynced;
}

void Health::stopping() {
  MutexLock lock(mutex_);
  stopping_ = true;
}

ProbeAnswer Health::healthz(SteadyTime now) const {
  MutexLock lock(mutex_);
  if (now - beat_at_ > kLoopLimit) {
    return {503, "stuck: the loop has not run for " + human_duration(now - beat_at_) + "\n"};
  }
  if (!stuck_watch_.empty()) return {503, "stuck: " + stuck_watch_ + "\n"};
  return {200, "ok\n"};
}

ProbeAnswer Health::readyz() const {
  MutexLock lock(mutex_);
  if (stopping_) return {503, "not ready: stopping\n"};
  if (!not_ready_.empty()) return {503, "not ready: " + not_ready_ + "\n"};
  return {200, "ok\n"};
}

}  // namespace holdfast::runtime
