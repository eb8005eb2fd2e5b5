#include "reconciler/rescue/journal.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace holdfast::reconciler {

Journal::Journal(std::vector<JournalEntry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const auto& a, const auto& b) { return a.due < b.due; });
}

std::vector<JournalEntry> Journal::open() const {
  std::vector<JournalEntry> open;
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(open),
               [](const JournalEntry& entry) { return entry.is_open(); });
  return open;
}

bool Journal::knows(const std::string& uid) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const JournalEntry& entry) { return entry.uid == uid; });
}

bool Journal::is_decided(const std::string& uid) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const JournalEntry& entry) {
    return entry.uid == uid && (entry.stays.empty() || entry.ended || entry.unseen);
  });
}

bool Journal::has_open(const std::string& uid, const std::string& stays) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const JournalEntry& entry) {
    return entry.uid == uid && entry.is_open() && entry.stays == stays;
  });
}

bool Journal::make_room(bool stays) {
  if (entries_.size() < kMostEntries) return true;
  using Fits = bool (*)(const JournalEntry&);
  const Fits all[] = {
      [](const JournalEntry& one) { return !one.stays.empty() && !one.is_open(); },
      [](const JournalEntry& one) { return !one.stays.empty(); },
      [](const JournalEntry& one) { return !one.is_open(); },
  };
  for (const Fits fits : std::span(all, stays ? 1 : 3)) {
    const auto oldest = std::find_if(entries_.begin(), entries_.end(), fits);
    if (oldest == entries_.end()) continue;
    entries_.erase(oldest);
    return true;
  }
  return false;
}

bool Journal::write_down(JournalEntry entry) {
  if (is_decided(entry.uid)) return false;
  const auto before = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const JournalEntry& one) { return one.uid == entry.uid; });
  if (before != entries_.end()) {
    if (has_open(entry.uid, entry.stays)) return false;
    entries_.erase(before);
  }
  if (!make_room(!entry.stays.empty())) return false;
  entries_.push_back(std::move(entry));
  ++changes_;
  return true;
}

void Journal::close(const std::string& uid, Fate fate, Time at) {
  for (JournalEntry& entry : entries_) {
    if (entry.uid != uid || !entry.is_open()) continue;
    (fate == Fate::kEnded    ? entry.ended
     : fate == Fate::kWentOn ? entry.returned
                             : entry.unseen) = at;
    ++changes_;
  }
}

void Journal::forget_before(Time time) {
  changes_ += std::erase_if(
      entries_, [&](const JournalEntry& entry) { return !entry.is_open() && entry.due < time; });
}

Duration hung_for(const JournalEntry& entry, Time now) {
  const Time end = entry.unseen  ? entry.due
                   : entry.ended ? *entry.ended
                                 : entry.returned.value_or(now);
  return std::max(Duration::zero(), end - entry.silent_since);
}

bool is_of_time_since(const JournalEntry& entry, Time since) {
  return entry.is_open() || entry.due >= since || entry.ended >= since || entry.returned >= since;
}

JournalSum sum_of(const std::vector<JournalEntry>& entries, Time now) {
  JournalSum sum;
  for (const JournalEntry& entry : entries) {
    if (!entry.stays.empty()) {
      ++sum.stay[entry.stays];
      continue;
    }
    if (entry.returned) {
      ++sum.hurt;
      continue;
    }
    ++sum.pods;
    sum.hung += hung_for(entry, now);
    sum.with_holdfast += entry.due - entry.silent_since;
  }
  return sum;
}

}  // namespace holdfast::reconciler
