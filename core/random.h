// Randomness is a parameter, so that one seed gives one run.
#pragma once

#include <cstdint>
#include <random>

namespace holdfast {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // In [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
};

// A real process seeds it from std::random_device, a test from a number.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace holdfast
