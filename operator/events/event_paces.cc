#include "operator/events/event_paces.h"

namespace holdfast::events {

std::vector<EventPaces::Report> EventPaces::add(const ObjectReference& regarding,
                                                EventPace::Entry entry, SteadyTime now) {
  std::vector<Report> reports;
  EventPace& pace = pace_of(regarding.uid, now, reports);
  pace.add(std::move(entry));
  take(regarding, pace, now, reports);
  return reports;
}

std::vector<EventPaces::Report> EventPaces::due(SteadyTime now) {
  std::vector<Report> reports;
  while (!early_until_.empty() && early_until_.begin()->first <= now) {
    const std::string uid = early_until_.begin()->second;
    const ObjectReference regarding = take_early(uid);
    take(regarding, pace_of(uid, now, reports), now, reports);
  }
  return reports;
}

std::optional<SteadyTime> EventPaces::wake() const {
  if (early_until_.empty()) return std::nullopt;
  return early_until_.begin()->first;
}

std::vector<EventPaces::Report> EventPaces::give_up() {
  std::vector<Report> reports;
  while (!early_.empty()) {
    const std::string uid = early_.begin()->first;
    const ObjectReference regarding = take_early(uid);
    give_up(regarding, pace_of(uid, SteadyTime(), reports), reports);
  }
  return reports;
}

EventPace& EventPaces::pace_of(const std::string& uid, SteadyTime now,
                               std::vector<Report>& reports) {
  std::optional<LruMap<EventPace>::Entry> evicted;
  EventPace& pace = paces_.get(uid, EventPace(now), &evicted);
  if (evicted && early_.count(evicted->first) != 0) {
    const ObjectReference regarding = take_early(evicted->first);
    give_up(regarding, evicted->second, reports);
  }
  return pace;
}

ObjectReference EventPaces::take_early(const std::string& uid) {
  const auto taken = early_.extract(uid);
  early_until_.erase({taken.mapped().until, uid});
  return taken.mapped().regarding;
}

void EventPaces::take(const ObjectReference& regarding, EventPace& pace, SteadyTime now,
                      std::vector<Report>& reports) {
  while (std::optional<EventPace::Entry> next = pace.take(now)) {
    reports.push_back({regarding, std::move(*next)});
  }
  dropped_ += pace.take_dropped();
  const std::optional<SteadyTime> wake = pace.wake();
  if (!wake || early_.count(regarding.uid) != 0) return;
  early_.emplace(regarding.uid, Early{regarding, *wake});
  early_until_.emplace(*wake, regarding.uid);
}

void EventPaces::give_up(const ObjectReference& regarding, EventPace& pace,
                         std::vector<Report>& reports) {
  for (EventPace::Entry& entry : pace.give_up()) reports.push_back({regarding, std::move(entry)});
  dropped_ += pace.take_dropped();
}

}  // namespace holdfast::events
