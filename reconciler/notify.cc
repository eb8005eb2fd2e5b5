#include "reconciler/notify.h"

#include <algorithm>
#include <array>

namespace holdfast::reconciler {
namespace {

constexpr std::array<const char*, 5> kEvents = {"Succeeded", "Failed", "Cancelled", "StageEnded",
                                                "Stalled"};

}  // namespace

const char* to_string(NotifyEvent event) { return kEvents[static_cast<std::size_t>(event)]; }

std::optional<NotifyEvent> parse_notify_event(const std::string& text) {
  for (std::size_t place = 0; place < kEvents.size(); ++place) {
    if (text == kEvents[place]) return static_cast<NotifyEvent>(place);
  }
  return std::nullopt;
}

bool TargetView::wants(NotifyEvent event) const {
  return state != State::kKnown || std::find(events.begin(), events.end(), event) != events.end();
}

}  // namespace holdfast::reconciler
