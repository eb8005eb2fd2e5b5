#include "operator/controller/heartbeat_records.h"

#include <algorithm>

namespace holdfast::controller {

bool HeartbeatRecords::still_taken(const Marks& marks, const reconciler::LeaseView& lease) {
  return marks.taken && lease.holder.empty() && marks.taken_uid == lease.uid &&
         marks.taken_from == lease.granted;
}

void HeartbeatRecords::seen(const CachedHeartbeat& lease, bool worked_on, SteadyTime now) {
  const Duration live = clocks_.read(lease.namespace_, now).now;
  const auto [found, added] = marks_.try_emplace(lease.key());
  Marks& marks = found->second;
  if (!lease.lease.holder.empty()) {
    marks.taken.reset();
  } else if (!still_taken(marks, lease.lease)) {
    marks.taken = now;
    marks.taken_uid = lease.lease.uid;
    marks.taken_from = lease.lease.granted;
  }
  if (added || marks.holder != lease.lease.holder) {
    marks.holder = lease.lease.holder;
    marks.progress = lease.mark;
    marks.progressed = live;
    tracker_.gone(lease.key());
  } else if (marks.progress != lease.mark) {
    marks.progress = lease.mark;
    marks.progressed = std::max(marks.progressed, live - lease.lease.progress_age);
  }
  if (!lease.lease.ended) {
    marks.ended.reset();
  } else if (!marks.ended) {
    marks.ended = now;
  }
  // Only what is being renewed can fall silent, alone or with others.
  if (!worked_on || lease.lease.holder.empty() || !lease.lease.renewed || lease.lease.ended) {
    tracker_.gone(lease.key());
  } else {
    tracker_.seen(lease.key(), lease.version, live);
  }
}

void HeartbeatRecords::gone(const std::string& key) {
  tracker_.gone(key);
  marks_.erase(key);
}

reconciler::LeaseObservation HeartbeatRecords::observe(const CachedHeartbeat& lease,
                                                       Duration window, SteadyTime now) {
  const reconciler::LiveTime live = clocks_.read(lease.namespace_, now);
  reconciler::LeaseObservation observation;
  const auto found = marks_.find(lease.key());
  if (found == marks_.end()) return observation;
  const Marks& marks = found->second;
  if (still_taken(marks, lease.lease)) observation.taken_for = now - *marks.taken;
  if (marks.ended) observation.ended_for = now - *marks.ended;
  observation.stalled_for =
      std::max(Duration::zero(), live.now - std::max(marks.progressed, live.epoch));
  observation.silent_for =
      tracker_.silent_for(lease.key(), live.now, live.epoch).value_or(Duration::zero());
  observation.breaker = tracker_.held_back(lease.key(), window, [&](const std::string& key) {
    return clocks_.read(key.substr(0, key.find('/')), now);
  });
  return observation;
}

}  // namespace holdfast::controller
