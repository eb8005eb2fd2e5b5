#include "reconciler/notify.h"

#include <algorithm>

namespace holdfast::reconciler {

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
