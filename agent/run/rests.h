// The pauses of a command that says "not yet": it ends with a deferred exit code, and runs again in
// the same pod. No clock inside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/time.h"

namespace holdfast::agent {

// The job's rule for an exit code that means "not yet".
struct Deferral {
  int exit_code = 0;
  Duration pause{};        // until the command runs again
  std::int64_t limit = 0;  // in a row, with those of earlier attempts
};

class Rests {
 public:
  // `before`: how many earlier attempts had in a row.
  Rests(std::vector<Deferral> rules, std::int64_t before)
      : rules_(std::move(rules)), before_(before) {}

  // The rule for this exit code; null: none, or its limit is reached, and the pod has to end with
  // it.
  const Deferral* rule(int exit_code) const {
    const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const Deferral& rule) {
      return rule.exit_code == exit_code;
    });
    return found == rules_.end() || before_ + count_ >= found->limit ? nullptr : &*found;
  }

  void begin(SteadyTime until) {
    ++count_;
    until_ = until;
    lasts_ = true;
    swept_ = false;
  }
  // None of the command's descendants is left.
  void swept() { swept_ = true; }
  void end() { lasts_ = false; }
  // The pod ends with this rest's exit code, which counts it.
  void hand_over() { --count_; }

  bool lasts() const { return lasts_; }
  bool is_swept() const { return swept_; }
  SteadyTime until() const { return until_; }
  // Of this attempt.
  std::int64_t count() const { return count_; }

 private:
  // Constant after construction.
  const std::vector<Deferral> rules_;
  const std::int64_t before_;

  std::int64_t count_ = 0;
  SteadyTime until_{};
  bool lasts_ = false;
  bool swept_ = false;
};

}  // namespace holdfast::agent
