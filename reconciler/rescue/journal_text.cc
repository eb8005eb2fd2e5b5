#include "reconciler/rescue/journal_text.h"

#include <utility>
#include <vector>

#include "core/json.h"

namespace holdfast::reconciler {
namespace {

Json encode(const JournalEntry& entry) {
  Json json = {{"namespace", entry.namespace_},
               {"pod", entry.pod},
               {"uid", entry.uid},
               {"node", entry.node},
               {"controller", entry.controller},
               {"silentSince", format_time(entry.silent_since)},
               {"due", format_time(entry.due)}};
  if (entry.ended) json["ended"] = format_time(*entry.ended);
  if (entry.returned) json["returned"] = format_time(*entry.returned);
  return json;
}

}  // namespace

std::string encode_journal(const Journal& journal) {
  std::vector<std::string> kept;
  std::size_t bytes = 2;
  const auto& entries = journal.entries();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    std::string text = encode(*entry).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (bytes + text.size() + 1 > kMostJournalBytes) break;
    bytes += text.size() + 1;
    kept.push_back(std::move(text));
  }
  std::string all = "[";
  for (auto text = kept.rbegin(); text != kept.rend(); ++text) {
    if (all.size() > 1) all += ",";
    all += *text;
  }
  return all + "]";
}

Journal decode_journal(std::string_view text) {
  std::vector<JournalEntry> entries;
  const Result<Json> json = parse_json(text);
  if (!json || !json->is_array()) return Journal();
  for (const Json& one : *json) {
    const auto silent = parse_time(string_at(one, "silentSince"));
    const auto due = parse_time(string_at(one, "due"));
    JournalEntry entry;
    entry.namespace_ = string_at(one, "namespace");
    entry.pod = string_at(one, "pod");
    entry.uid = string_at(one, "uid");
    entry.node = string_at(one, "node");
    entry.controller = string_at(one, "controller");
    if (!silent || !due || entry.uid.empty()) continue;
    entry.silent_since = *silent;
    entry.due = *due;
    entry.ended = parse_time(string_at(one, "ended"));
    entry.returned = parse_time(string_at(one, "returned"));
    entries.push_back(std::move(entry));
    if (entries.size() == Journal::kMostEntries) break;
  }
  return Journal(std::move(entries));
}

}  // namespace holdfast::reconciler
