// A RealLoop on a thread of its own, for tests with real sockets and threads.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "core/loop_thread.h"

namespace holdfast::test {

// Longer than any step takes on a slow and busy machine. A test that waits this long has failed.
inline constexpr std::chrono::seconds kPatience{20};

class LoopThread : public holdfast::LoopThread {
 public:
  LoopThread() : holdfast::LoopThread(kPatience) {}
};

// Polls until the condition is true. False: not within kPatience.
inline bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace holdfast::test
