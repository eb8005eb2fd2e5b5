#include "operator/codecs/outbox_codec.h"

#include <algorithm>

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"

namespace holdfast::codecs {
namespace {

// Of an event that this version does not know. Those that it knows take a third of it at most.
constexpr std::size_t kUnknownLimit = 8192;

}  // namespace

void decode_outbox(const JsonView& status, reconciler::Status& decoded) {
  auto& outbox = decoded.outbox;
  for (const JsonView json : at(status, "outbox")) {
    if (outbox.size() == reconciler::kOutboxLimit) break;
    auto entry = api::read<reconciler::OutboxEntry>(json);
    const std::string name = string_at(json, "event");
    // A number is never used twice, so a later one is not the job's.
    const bool is_ours = entry.number > 0 && entry.number <= decoded.notifications;
    const bool has_time = time_at(json, "time").has_value();
    if (name.empty() || !has_time || entry.targets.empty() || !is_ours) continue;
    if (!reconciler::parse_notify_event(name)) {
      if (json.text().size() > kUnknownLimit) continue;
      reconciler::OutboxEntry unknown;
      unknown.number = entry.number;
      unknown.time = entry.time;
      unknown.targets = std::move(entry.targets);
      unknown.unknown = json.text();
      entry = std::move(unknown);
    }
    outbox.push_back(std::move(entry));
  }
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  const auto same = [](const auto& a, const auto& b) { return a.number == b.number; };
  std::stable_sort(outbox.begin(), outbox.end(), by_number);
  outbox.erase(std::unique(outbox.begin(), outbox.end(), same), outbox.end());
}

void encode_outbox(const reconciler::Status& status, Json& json) {
  for (const reconciler::OutboxEntry& entry : status.outbox) {
    if (entry.unknown.empty()) {
      json["outbox"].push_back(api::write(entry));
      continue;
    }
    Result<Json> one = parse_json(entry.unknown);
    if (!one.ok()) continue;
    (*one)["targets"] = entry.targets;
    json["outbox"].push_back(std::move(*one));
  }
}

}  // namespace holdfast::codecs
