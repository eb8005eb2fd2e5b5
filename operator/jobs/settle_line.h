// The turns of finished jobs that lack `settled` and get no other write: those of earlier versions.
// They may be very many, and nothing waits for them, so few are written in a second. Loop only.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>

#include "core/loop.h"

namespace holdfast::jobs {

class SettleLine {
 public:
  static constexpr std::chrono::milliseconds kBetweenTurns{100};
  // The next resync finds the others again.
  static constexpr std::size_t kMost = 10'000;

  // `look` gets the key of the job whose turn it is.
  SettleLine(Loop& loop, std::function<void(const std::string& key)> look)
      : loop_(loop), look_(std::move(look)) {}
  ~SettleLine() { stop(); }

  void stop();
  // Nothing, if it is in the line or has its turn.
  void add(const std::string& key);
  // True: the job had its turn. It has none any more.
  bool take_turn(const std::string& key) { return turns_.erase(key) != 0; }

 private:
  void wait();

  Loop& loop_;
  const std::function<void(const std::string&)> look_;
  std::deque<std::string> line_;
  std::unordered_set<std::string> waiting_;  // in the line
  std::unordered_set<std::string> turns_;
  TimerId timer_ = 0;
};

}  // namespace holdfast::jobs
