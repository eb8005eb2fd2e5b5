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

Duration obeyed_pause(Duration asked) { return std::min<Duration>(asked, kLongestNotifyPause); }

Duration next_notify_pause(Duration age, double draw, std::optional<Duration> obeyed) {
  const auto bounded = [](Duration pause) {
    return std::clamp<Duration>(pause, kShortestNotifyPause, kLongestNotifyPause);
  };
  const double factor = 1 + (2 * draw - 1) * kNotifyPauseSpreadPercent / 100.0;
  const Duration pause = bounded(std::chrono::duration_cast<Duration>(bounded(age) * factor));
  return std::max(pause, obeyed.value_or(pause));
}

bool notifies_no_longer(Duration age) { return age >= kNotifyFor; }

bool TargetView::wants(NotifyEvent event) const {
  return state != State::kKnown || std::find(events.begin(), events.end(), event) != events.end();
}

}  // namespace holdfast::reconciler
