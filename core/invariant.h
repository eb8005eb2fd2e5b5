// Rules that only a bug in Holdfast can break. Checked in every build, because a wrong write is
// worse than none.
//
//   invariant(next.attempt >= before.attempt, "the attempt never falls");
//
// A broken invariant throws. A reconcile that throws counts as failed and is retried with back-off.
// So a bug that one job triggers stops only that job. Elsewhere the exception ends the process.
#pragma once

#include <stdexcept>
#include <string>

namespace holdfast {

class BrokenInvariant : public std::logic_error {
 public:
  explicit BrokenInvariant(const char* rule)
      : std::logic_error(std::string("a bug in Holdfast: broken invariant: ") + rule) {}
};

inline void invariant(bool holds, const char* rule) {
  if (!holds) throw BrokenInvariant(rule);
}

}  // namespace holdfast
