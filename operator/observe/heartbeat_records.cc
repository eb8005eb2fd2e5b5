#include "operator/observe/heartbeat_records.h"

#include <algorithm>

#include "reconciler/names.h"

namespace holdfast::observe {
namespace {

// The mark that does not change while a Lease is taken, or ended.
std::uint64_t taken_mark(const reconciler::LeaseView& lease) {
  return reconciler::hash64(lease.uid + "/" + lease.granted);
}
std::uint64_t ended_mark(const reconciler::LeaseView& lease) {
  return reconciler::hash64(lease.uid + "/" + lease.holder);
}

// Any clock, as live time that never stops.
reconciler::LiveTime steady(SteadyTime now) { return {now.time_since_epoch(), Duration::zero()}; }

void see(reconciler::RecordTracker& tracker, const std::string& key, bool is_there,
         std::uint64_t mark, SteadyTime now) {
  if (is_there) {
    tracker.seen(key, mark, steady(now).now);
  } else {
    tracker.gone(key);
  }
}

std::optional<Duration> stands_for(const reconciler::RecordTracker& tracker, const std::string& key,
                                   std::uint64_t mark, SteadyTime now) {
  if (!tracker.knows(key) || tracker.version(key) != mark) return std::nullopt;
  return tracker.silent_for(key, steady(now).now, Duration::zero());
}

}  // namespace

reconciler::LiveTime HeartbeatRecords::time(const std::string& key, SteadyTime now) {
  return clocks_.read(kube::namespace_of(key), now);
}

void HeartbeatRecords::keep_windows(WindowKeeper& windows, const Loop& loop,
                                    const WantedBy& wanted) {
  const auto live = [this, &loop](const std::string& key) { return time(key, loop.now()); };
  const auto any = [&loop](const std::string&) { return steady(loop.now()); };
  windows.add(
      "holder",
      {.tracker = tracker_, .clock = live, .wanted = wanted.silent, .mark_proves_silence = true});
  windows.add(
      "taken",
      {.tracker = taken_, .clock = any, .wanted = wanted.taken, .mark_proves_silence = true});
  windows.add(
      "ended",
      {.tracker = ended_, .clock = any, .wanted = wanted.ended, .mark_proves_silence = true});
}

void HeartbeatRecords::seen(const codecs::CachedHeartbeat& lease, bool worked_on, SteadyTime now) {
  const std::string key = lease.key();
  const Duration live = time(key, now).now;
  const auto [found, added] = marks_.try_emplace(key);
  Marks& marks = found->second;
  if (!added && marks.version != lease.version) marks.changed = live;
  marks.version = lease.version;
  see(taken_, key, lease.lease.holder.empty(), taken_mark(lease.lease), now);
  see(ended_, key, lease.lease.ended, ended_mark(lease.lease), now);
  if (added || marks.holder != lease.lease.holder) {
    marks.holder = lease.lease.holder;
    marks.progress = lease.mark;
    // A new process knows from the agent how old the last progress is.
    marks.progressed = live - (added ? lease.lease.progress_age : Duration::zero());
    marks.first_seen = live;
    if (tracker_.knows(key)) tracker_.gone(key);
  } else if (marks.progress != lease.mark) {
    marks.progress = lease.mark;
    marks.progressed = std::max(marks.progressed, live - lease.lease.progress_age);
    marks.first_seen = live;
  }
  // Only a Lease that is being renewed can fall silent.
  if (!worked_on || lease.lease.holder.empty() || !lease.lease.renewed || lease.lease.ended) {
    if (tracker_.knows(key)) tracker_.gone(key);
  } else {
    tracker_.seen(key, lease.version, live);
  }
}

void HeartbeatRecords::gone(const std::string& key) {
  tracker_.gone(key);
  taken_.gone(key);
  ended_.gone(key);
  marks_.erase(key);
}

bool HeartbeatRecords::unheard_since_gap(const std::string& key, SteadyTime now) {
  const auto found = marks_.find(key);
  if (found == marks_.end()) return false;
  const auto& changed = found->second.changed;
  return !changed || *changed < time(key, now).epoch;
}

reconciler::LeaseObservation HeartbeatRecords::observe(const codecs::CachedHeartbeat& lease,
                                                       Duration window, SteadyTime now,
                                                       const LookTimes& asked) {
  const std::string key = lease.key();
  const reconciler::LiveTime live = until(asked.heartbeats, time(key, now));
  reconciler::LeaseObservation observation;
  const auto found = marks_.find(key);
  if (found == marks_.end()) return observation;
  const Marks& marks = found->second;
  if (lease.lease.holder.empty()) {
    // Nobody can renew it, so nothing can have happened since the read.
    observation.taken_for =
        stands_for(taken_, key, taken_mark(lease.lease), now).value_or(Duration::zero());
  }
  observation.ended_for =
      stands_for(ended_, key, ended_mark(lease.lease), std::min(now, asked.steady));
  // A gap before this process saw the mark does not matter: the agent's own count went on.
  const bool gap = live.epoch > marks.first_seen;
  const Duration since = gap ? std::max(marks.progressed, live.epoch) : marks.progressed;
  observation.stalled_for = std::max(Duration::zero(), live.now - since);
  observation.silent_for = tracker_.counted(key, window, reconciler::agent_first_look(window), live)
                               .value_or(Duration::zero());
  observation.breaker = tracker_.held_back(
      key, window, [&](const std::string& other) { return time(other, now); }, now);
  return observation;
}

}  // namespace holdfast::observe
