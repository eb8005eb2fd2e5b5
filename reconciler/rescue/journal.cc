#include "reconciler/rescue/journal.h"

#include <algorithm>
#include <utility>

namespace holdfast::reconciler {

Journal::Journal(std::vector<JournalEntry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const auto& a, const auto& b) { return a.due < b.due; });
}

bool Journal::knows(const std::string& uid) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const JournalEntry& entry) { return entry.uid == uid; });
}

JournalEntry* Journal::open_entry(const std::string& uid) {
  for (JournalEntry& entry : entries_) {
    if (entry.uid == uid && entry.is_open()) return &entry;
  }
  return nullptr;
}

void Journal::would_free(JournalEntry entry) {
  if (knows(entry.uid)) return;
  if (entries_.size() >= kMostEntries) {
    const auto over = std::find_if(entries_.begin(), entries_.end(),
                                   [](const JournalEntry& one) { return !one.is_open(); });
    entries_.erase(over == entries_.end() ? entries_.begin() : over);
  }
  entries_.push_back(std::move(entry));
  ++changes_;
}

void Journal::pod_ended(const std::string& uid, Time at) {
  JournalEntry* const entry = open_entry(uid);
  if (!entry) return;
  entry->ended = at;
  ++changes_;
}

void Journal::pod_went_on(const std::string& uid, Time at) {
  JournalEntry* const entry = open_entry(uid);
  if (!entry) return;
  entry->returned = at;
  ++changes_;
}

void Journal::forget_before(Time time) {
  changes_ += std::erase_if(entries_, [&](const JournalEntry& entry) { return entry.due < time; });
}

Duration hung_for(const JournalEntry& entry, Time now) {
  const Time end = entry.ended ? *entry.ended : entry.returned.value_or(now);
  return std::max(Duration::zero(), end - entry.silent_since);
}

JournalSum sum_of(const std::vector<JournalEntry>& entries, Time since, Time now) {
  JournalSum sum;
  for (const JournalEntry& entry : entries) {
    if (entry.due < since) continue;
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
