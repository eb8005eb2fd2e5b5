#include "operator/events/event_pace.h"

#include <algorithm>
#include <utility>

namespace holdfast::events {
namespace {

constexpr Duration kRefill = std::chrono::minutes(5);
constexpr Duration kBetween = std::chrono::seconds(1);
// Kinds of Events about one object that wait.
constexpr std::size_t kMostWaiting = 8;

bool is_like(const EventPace::Entry& a, const EventPace::Entry& b) {
  return a.warning == b.warning && a.reason == b.reason && a.action == b.action;
}

}  // namespace

void EventPace::add(Entry entry) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return is_like(one.last, entry); });
  if (found == waiting_.end()) {
    if (waiting_.size() == kMostWaiting) {
      const auto oldest = std::find_if(waiting_.begin(), waiting_.end(),
                                       [](const Waiting& one) { return !ends(one.last); });
      const auto goes = oldest == waiting_.end() ? waiting_.begin() : oldest;
      drop(*goes);
      waiting_.erase(goes);
    }
    waiting_.push_back({std::move(entry), 0});
  } else if (found->last.note == entry.note) {
    found->last.count += entry.count;
    found->last.at = entry.at;
  } else {
    found->others += found->last.count;
    found->last = std::move(entry);
  }
}

std::optional<EventPace::Entry> EventPace::take(SteadyTime now) {
  if (taken_at_ && now - *taken_at_ < kBetween) return std::nullopt;
  while (!waiting_.empty()) {
    auto next = std::find_if(waiting_.begin(), waiting_.end(),
                             [](const Waiting& one) { return ends(one.last); });
    const bool is_end = next != waiting_.end();
    if (!is_end) next = waiting_.begin();
    const Waiting taken = std::move(*next);
    waiting_.erase(next);
    if (!is_end && !may_spend(now)) {
      drop(taken);
      continue;
    }
    taken_at_ = now;
    return entry_of(taken);
  }
  return std::nullopt;
}

EventPace::Entry EventPace::entry_of(const Waiting& taken) {
  Entry entry = taken.last;
  if (taken.others == 0) return entry;
  entry.note =
      "the last of " + std::to_string(taken.others + entry.count) + " such Events: " + entry.note;
  entry.count = 1;
  return entry;
}

std::vector<EventPace::Entry> EventPace::give_up() {
  std::vector<Entry> ends_of_it;
  for (const Waiting& one : std::exchange(waiting_, {})) {
    if (ends(one.last)) {
      ends_of_it.push_back(entry_of(one));
    } else {
      drop(one);
    }
  }
  return ends_of_it;
}

std::optional<SteadyTime> EventPace::wake() const {
  if (waiting_.empty()) return std::nullopt;
  return taken_at_ ? *taken_at_ + kBetween : filled_;
}

std::uint64_t EventPace::take_dropped() { return std::exchange(dropped_, 0); }

bool EventPace::may_spend(SteadyTime now) {
  tokens_ = std::min(kBurst, tokens_ + to_seconds(now - filled_) / to_seconds(kRefill));
  filled_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace holdfast::events
