// What the operator would have freed, and what became of it (docs/rescue.md, Observe). Pure.
//
// A pod comes into the journal when it would have been freed. Its entry then waits for one of two
// ends: the pod ends, or its node renews first and the pod goes on. The second shows that the
// verdict was false, and that a rescue would have hurt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::reconciler {

struct JournalEntry {
  std::string namespace_, pod, uid;
  std::string node;
  std::string controller;        // "Job/night"
  Time silent_since{};           // the last renewal of its node
  Time due{};                    // it would have been freed
  std::optional<Time> ended;     // it is gone, or its phase became final
  std::optional<Time> returned;  // its node renewed first, and the pod went on

  bool is_open() const { return !ended && !returned; }
};

class Journal {
 public:
  // The oldest entries that are not open go first, then the oldest.
  static constexpr std::size_t kMostEntries = 1000;

  Journal() = default;
  // As recorded before.
  explicit Journal(std::vector<JournalEntry> entries);

  // A pod that has an entry already keeps it.
  void would_free(JournalEntry entry);
  void pod_ended(const std::string& uid, Time at);
  void pod_went_on(const std::string& uid, Time at);
  // Entries whose due time is before this one go.
  void forget_before(Time time);

  const std::vector<JournalEntry>& entries() const { return entries_; }
  bool knows(const std::string& uid) const;
  // Rises with each change.
  std::uint64_t changes() const { return changes_; }

 private:
  JournalEntry* open_entry(const std::string& uid);

  std::vector<JournalEntry> entries_;  // by due time
  std::uint64_t changes_ = 0;
};

// What a report says of the entries since a time.
struct JournalSum {
  std::size_t pods = 0;       // that hung and ended, or still hang
  Duration hung{0};           // from the last renewal to the end, or to now
  Duration with_holdfast{0};  // from the last renewal to when they would have been freed
  std::size_t hurt = 0;       // false verdicts: the pod went on
};
JournalSum sum_of(const std::vector<JournalEntry>& entries, Time since, Time now);
// How long a pod hung.
Duration hung_for(const JournalEntry& entry, Time now);

}  // namespace holdfast::reconciler
