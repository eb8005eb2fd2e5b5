// The journal as text, for the ConfigMap that keeps it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.h"
#include "reconciler/rescue/journal.h"

namespace holdfast::reconciler {

inline constexpr const char* kJournalName = "holdfast-rescue-journal";
inline constexpr const char* kObserverLease = "holdfast-observer";  // its holder writes the journal
inline constexpr const char* kJournalKey = "journal.json";
inline constexpr const char* kSinceKey = "observedSince";  // since when somebody observes
inline constexpr std::size_t kMostJournalBytes = std::size_t{256} * 1024;

Json encode_entry(const JournalEntry& entry);
// At most kMostJournalBytes: those that stay are left out first, then the oldest, and those that are
// open last.
std::string encode_journal(const Journal& journal);
// Leaves out malformed entries.
Journal decode_journal(std::string_view text);

}  // namespace holdfast::reconciler
