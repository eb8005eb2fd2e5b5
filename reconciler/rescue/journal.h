// What the operator would have freed, and what became of it (docs/rescue.md, Observe). Pure.
//
// A pod comes into the journal when it would have been freed, or when its node's silence counts and
// Holdfast would leave it as it is. Its entry then waits for what became of the pod. If the pod goes
// on, the verdict was false, and a rescue would have hurt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
  Time due{};                    // it would have been freed, or left
  std::string stays;             // why it would be left: a RescueRefusal's word; empty: freed
  std::optional<Time> ended;     // it is gone, or has failed
  std::optional<Time> returned;  // its node renewed, and it went on; or it succeeded
  std::optional<Time> unseen;    // it ended while nobody observed, found then

  bool is_open() const { return !ended && !returned && !unseen; }
  std::string key() const { return namespace_ + "/" + pod; }
};

class Journal {
 public:
  static constexpr std::size_t kMostEntries = 500;

  Journal() = default;
  // As recorded before.
  explicit Journal(std::vector<JournalEntry> entries);

  // A pod that has an entry already keeps it. But one that stays may be freed later, and once its node
  // was back it may hang again. If
  // the journal is full, one that stays goes, and then the oldest that is not open. A pod that stays
  // displaces only such a one that is not open. False: nothing was written down.
  bool write_down(JournalEntry entry);
  enum class Fate { kEnded, kWentOn, kUnseen };
  // No effect if the pod has no open entry.
  void close(const std::string& uid, Fate fate, Time at);
  // Entries that are not open and whose due time is before this one go.
  void forget_before(Time time);

  const std::vector<JournalEntry>& entries() const { return entries_; }
  // Copies, so that the caller may close them.
  std::vector<JournalEntry> open() const;
  bool knows(const std::string& uid) const;
  // It is written down that the pod stays for this reason, and it still hangs.
  bool has_open(const std::string& uid, const std::string& stays) const;
  // Nothing more is decided about it: it would have been freed, or it is gone.
  bool is_decided(const std::string& uid) const;
  // Rises with each change.
  std::uint64_t changes() const { return changes_; }

 private:
  bool make_room(bool stays);

  std::vector<JournalEntry> entries_;  // by due time
  std::uint64_t changes_ = 0;
};

// The entry says something of the time since then.
bool is_of_time_since(const JournalEntry& entry, Time since);

// What a report says of some entries.
struct JournalSum {
  std::size_t pods = 0;       // that hung and ended, or still hang
  Duration hung{0};           // from the last renewal to the end, or to now
  Duration with_holdfast{0};  // from the last renewal to when they would have been freed
  std::size_t hurt = 0;       // false verdicts: the pod went on
  // Those that Holdfast would have left, by why. They are in none of the above.
  std::map<std::string, std::size_t> stay;
};
JournalSum sum_of(const std::vector<JournalEntry>& entries, Time now);
// How long a pod hung, at least.
Duration hung_for(const JournalEntry& entry, Time now);

}  // namespace holdfast::reconciler
