#include "reconciler/rescue/journal_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/json.h"

namespace holdfast::reconciler {

Json encode_entry(const JournalEntry& entry) {
  Json json = {{"namespace", entry.namespace_},
               {"pod", entry.pod},
               {"uid", entry.uid},
               {"node", entry.node},
               {"controller", entry.controller},
               {"silentSince", format_time(entry.silent_since)},
               {"due", format_time(entry.due)}};
  if (!entry.stays.empty()) json["stays"] = entry.stays;
  if (entry.ended) json["ended"] = format_time(*entry.ended);
  if (entry.returned) json["returned"] = format_time(*entry.returned);
  if (entry.unseen) json["unseen"] = format_time(*entry.unseen);
  return json;
}

// An open entry that is left out would be due again, later.
std::string encode_journal(const Journal& journal) {
  std::vector<std::string> texts;
  std::vector<std::size_t> places;  // by how much they matter
  for (const JournalEntry& entry : journal.entries()) {
    places.push_back(texts.size());
    texts.push_back(encode_entry(entry).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  std::reverse(places.begin(), places.end());
  const auto rank = [&](std::size_t place) {
    const JournalEntry& entry = journal.entries()[place];
    return !entry.stays.empty() ? 2 : entry.is_open() ? 0 : 1;
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::size_t bytes = 2;
  for (const std::size_t place : places) {
    bytes += texts[place].size() + 1;
    if (bytes > kMostJournalBytes) texts[place].clear();
  }
  std::string all = "[";
  for (const std::string& text : texts) {
    if (text.empty()) continue;
    if (all.size() > 1) all += ",";
    all += text;
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
    entry.stays = string_at(one, "stays");
    entry.silent_since = *silent;
    entry.due = *due;
    entry.ended = parse_time(string_at(one, "ended"));
    entry.returned = parse_time(string_at(one, "returned"));
    entry.unseen = parse_time(string_at(one, "unseen"));
    entries.push_back(std::move(entry));
    if (entries.size() == Journal::kMostEntries) break;
  }
  return Journal(std::move(entries));
}

}  // namespace holdfast::reconciler
