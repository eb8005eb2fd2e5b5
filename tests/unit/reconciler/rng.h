// Seeded randomness that is the same on every machine (SplitMix64).
#pragma once

#include <cstdint>

namespace holdfast::reconciler::testing {

class Rng {
 public:
  // Neighbouring seeds must not be shifts of one sequence, so the seed is mixed first.
  explicit Rng(std::uint64_t seed) : state_(seed) { state_ = next() ^ (seed << 32); }

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, limit).
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  bool percent(int chance) { return below(100) < chance; }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::reconciler::testing
