#include "api/spec.h"

#include <algorithm>

namespace holdfast::api {

bool ExitCodesMatch::matches(const std::string& name, int code) const {
  if (code == 0 || (!container.empty() && container != name)) return false;
  return in == (std::find(values.begin(), values.end(), code) != values.end());
}

void read_word(const std::string& word, PodReplacementPolicy& policy) {
  if (word == "TerminatingOrFailed") policy = PodReplacementPolicy::kTerminatingOrFailed;
  if (word == "Failed") policy = PodReplacementPolicy::kFailed;
}

void read_word(const std::string& word, PolicyAction& action) {
  if (word == "Count") action = PolicyAction::kCount;
  if (word == "FailJob") action = PolicyAction::kFailJob;
  if (word == "FailIndex") action = PolicyAction::kFailIndex;
  if (word == "Ignore") action = PolicyAction::kIgnore;
  if (word == "Defer") action = PolicyAction::kDefer;
}

}  // namespace holdfast::api
