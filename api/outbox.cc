#include "api/outbox.h"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::api {
namespace {

constexpr std::array<const char*, 5> kEvents = {"Succeeded", "Failed", "Cancelled", "StageEnded",
                                                "Stalled"};

}  // namespace

std::vector<std::string> target_names(const JsonView& json) {
  std::vector<std::string> names;
  for (const JsonView one : json) {
    std::string name(one.string_or(""));
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (name.empty() || name.size() > kTargetNameLimit || is_known) continue;
    if (names.size() == kNotifyLimit) break;
    names.push_back(std::move(name));
  }
  return names;
}

const char* to_string(NotifyEvent event) { return kEvents[static_cast<std::size_t>(event)]; }

std::optional<NotifyEvent> parse_notify_event(const std::string& text) {
  for (std::size_t position = 0; position < kEvents.size(); ++position) {
    if (text == kEvents[position]) return static_cast<NotifyEvent>(position);
  }
  return std::nullopt;
}

}  // namespace holdfast::api
