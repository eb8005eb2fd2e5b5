#include "operator/codecs/outbox_codec.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"

namespace holdfast::controller {
namespace {

constexpr std::size_t kNameLimit = 63;
// Of an event that this version does not know. Those that it knows take a third of it at most.
constexpr std::size_t kUnknownLimit = 8192;

std::vector<std::string> decode_names(const JsonView& json) {
  std::vector<std::string> names;
  for (const JsonView one : json) {
    std::string name(one.string_or(""));
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (name.empty() || name.size() > kNameLimit || is_known) continue;
    if (names.size() == reconciler::kNotifyLimit) break;
    names.push_back(std::move(name));
  }
  return names;
}

std::string notify_text(const JsonView& json, const char* key) {
  return utf8_prefix(string_at(json, key), reconciler::kNotifyTextLimit);
}

}  // namespace

std::vector<std::string> decode_notify(const JsonView& json) { return decode_names(json); }

void decode_outbox(const JsonView& status, reconciler::Status& decoded) {
  decoded.notifications =
      std::clamp<std::int64_t>(int_at(status, "notifications"), 0, reconciler::kCountLimit);
  auto& outbox = decoded.outbox;
  for (const JsonView json : at(status, "outbox")) {
    if (outbox.size() == reconciler::kOutboxLimit) break;
    reconciler::OutboxEntry entry;
    entry.number = int_at(json, "number");
    const std::string name = string_at(json, "event");
    const auto event = reconciler::parse_notify_event(name);
    const auto time = time_at(json, "time");
    entry.targets = decode_names(at(json, "targets"));
    // A number is never used twice, so a later one is not the job's.
    const bool is_ours = entry.number > 0 && entry.number <= decoded.notifications;
    if (name.empty() || !time || entry.targets.empty() || !is_ours) continue;
    entry.time = *time;
    if (!event) {
      if (json.text().size() > kUnknownLimit) continue;
      entry.unknown = json.text();
      outbox.push_back(std::move(entry));
      continue;
    }
    entry.event = *event;
    entry.stage = string_at(json, "stage");
    entry.reason = notify_text(json, "reason");
    entry.message = notify_text(json, "message");
    outbox.push_back(std::move(entry));
  }
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  const auto same = [](const auto& a, const auto& b) { return a.number == b.number; };
  std::stable_sort(outbox.begin(), outbox.end(), by_number);
  outbox.erase(std::unique(outbox.begin(), outbox.end(), same), outbox.end());
}

void encode_outbox(const reconciler::Status& status, Json& json) {
  if (status.notifications > 0) json["notifications"] = status.notifications;
  for (const reconciler::OutboxEntry& entry : status.outbox) {
    if (!entry.unknown.empty()) {
      Result<Json> one = parse_json(entry.unknown);
      if (!one.ok()) continue;
      (*one)["targets"] = entry.targets;
      json["outbox"].push_back(std::move(*one));
      continue;
    }
    Json one = {{"number", entry.number},
                {"event", to_string(entry.event)},
                {"time", format_time(entry.time)},
                {"targets", entry.targets}};
    if (!entry.stage.empty()) one["stage"] = entry.stage;
    if (!entry.reason.empty()) one["reason"] = entry.reason;
    if (!entry.message.empty()) one["message"] = entry.message;
    json["outbox"].push_back(std::move(one));
  }
}

}  // namespace holdfast::controller
