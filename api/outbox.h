// The events of a job that its targets (spec.notify) have not taken yet: docs/notifications.md.
// Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "core/json_view.h"
#include "core/time.h"

namespace holdfast::api {

// Targets get a message about these changes of a job.
enum class NotifyEvent { kSucceeded, kFailed, kCancelled, kStageEnded, kStalled };
inline constexpr NotifyEvent kLastNotifyEvent = NotifyEvent::kStalled;
const char* to_string(NotifyEvent event);
std::optional<NotifyEvent> parse_notify_event(const std::string& text);
inline void read_word(const std::string& word, NotifyEvent& event) {
  event = parse_notify_event(word).value_or(event);
}

// The limits of the CRD's schema.
inline constexpr std::size_t kNotifyLimit = 4;  // targets of a job
inline constexpr std::size_t kTargetNameLimit = 63;
inline constexpr std::size_t kOutboxLimit = 32;
inline constexpr std::size_t kNotifyTextLimit = 256;

// Names of targets, each once, kNotifyLimit at most.
std::vector<std::string> target_names(const JsonView& list);

// An event that not all of its targets have taken yet.
struct OutboxEntry {
  std::int64_t number =
      0;  // the job's first event has 1; with the job's UID it identifies the event
  NotifyEvent event = NotifyEvent::kSucceeded;
  Time time{};                       // of the change, in whole seconds
  std::string stage;                 // of StageEnded
  std::string reason;                // of StageEnded: the stage's phase
  std::string message;               // kNotifyTextLimit bytes at most
  std::vector<std::string> targets;  // those that have not taken it, each once
  // An event that only a newer version knows, as JSON. The operator keeps it for a replica of that
  // version and does not deliver it. Then `event` says nothing.
  std::string unknown;
  bool operator==(const OutboxEntry&) const = default;
};
template <class Io, Is<OutboxEntry> X>
constexpr void fields(Io& io, X& entry) {
  io("number", entry.number, {.required = true, .at_rest = true});
  io("event", entry.event, {.required = true, .at_rest = true});
  io("time", entry.time, {.required = true, .at_rest = true});
  io("stage", entry.stage, {.at_rest = true});
  io("reason", entry.reason, {.at_rest = true, .bytes = kNotifyTextLimit});
  io("message", entry.message, {.at_rest = true, .bytes = kNotifyTextLimit});
  io("targets", entry.targets, {.required = true, .at_rest = true},
     Read{[](const JsonView& json) { return target_names(at(json, "targets")); }});
  io.own(entry.unknown, {.at_rest = true});
}
static_assert(names_all<OutboxEntry>());
}  // namespace holdfast::api
