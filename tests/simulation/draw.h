// Numbers that are drawn from a seed, each independent of how the others are used.
#pragma once

#include <cstdint>

#include "tests/simulation/acts.h"

namespace holdfast::simulation {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return mix(seed_, ++count_) % bound; }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  bool percent(int chance) { return between(0, 99) < chance; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace holdfast::simulation
