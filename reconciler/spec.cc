#include "reconciler/spec.h"

#include <algorithm>

namespace holdfast::reconciler {

bool ExitCodesMatch::matches(const std::string& name, int code) const {
  if (code == 0 || (!container.empty() && container != name)) return false;
  return in == (std::find(values.begin(), values.end(), code) != values.end());
}

}  // namespace holdfast::reconciler
