// The paces of all objects with Events (event_pace.h), at most `capacity`. An object that makes
// room for another one reports at once how it ends, and drops what else waits. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/events/event_pace.h"
#include "operator/events/events.h"
#include "operator/events/lru_map.h"

namespace holdfast::events {

class EventPaces {
 public:
  struct Report {
    ObjectReference regarding;
    EventPace::Entry entry;
  };
  explicit EventPaces(std::size_t capacity) : paces_(capacity) {}

  // Returns what may be reported now.
  std::vector<Report> add(const ObjectReference& regarding, EventPace::Entry entry, SteadyTime now);
  std::vector<Report> due(SteadyTime now);
  // When due() has the next one; none: nothing waits.
  std::optional<SteadyTime> wake() const;
  // Nothing will be reported after this. Returns how objects end, of what waits.
  std::vector<Report> give_up();
  // How many will never be reported, since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  struct Early {
    ObjectReference regarding;
    SteadyTime until{};
  };
  EventPace& pace_of(const std::string& uid, SteadyTime now, std::vector<Report>& reports);
  ObjectReference take_early(const std::string& uid);
  void take(const ObjectReference& regarding, EventPace& pace, SteadyTime now,
            std::vector<Report>& reports);
  void give_up(const ObjectReference& regarding, EventPace& pace, std::vector<Report>& reports);

  LruMap<EventPace> paces_;  // by UID
  // Those with Events that come too early.
  std::map<std::string, Early> early_;
  std::set<std::pair<SteadyTime, std::string>> early_until_;
  std::uint64_t dropped_ = 0;
};

}  // namespace holdfast::events
