// What only a bug of ours can break. It is checked in every build: a wrong write is worse than
// none.
//
//   invariant(next.attempt >= before.attempt, "the attempt never falls");
//
// A broken one throws. A reconcile that throws counts as failed and is tried again with back-off,
// so that a bug that one job meets stops that job and no other; elsewhere it ends the process.
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
