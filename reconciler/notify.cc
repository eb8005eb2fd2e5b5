#include "reconciler/notify.h"

#include <algorithm>

namespace holdfast::reconciler {

bool TargetView::wants(NotifyEvent event) const {
  return state != State::kKnown || std::find(events.begin(), events.end(), event) != events.end();
}

}  // namespace holdfast::reconciler
