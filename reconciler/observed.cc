#include "reconciler/observed.h"

namespace holdfast::reconciler {

bool is_empty(AtPlace place) { return place != AtPlace::kUnknown && place != AtPlace::kRunning; }

const RunView& JobView::seen(std::size_t place) const {
  static const RunView kNothing;
  return place < runs.size() ? runs[place] : kNothing;
}

RunView& JobView::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
}

}  // namespace holdfast::reconciler
