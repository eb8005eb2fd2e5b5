#include "reconciler/observed.h"

namespace holdfast::reconciler {

bool is_empty(AtPlace place) { return place != AtPlace::kUnknown && place != AtPlace::kRunning; }

const RunView& JobView::seen(std::size_t position) const {
  static const RunView kNothing;
  return position < runs.size() ? runs[position] : kNothing;
}

RunView& JobView::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
}

}  // namespace holdfast::reconciler
