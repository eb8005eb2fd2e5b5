// A RealLoop on a thread of its own, for tests with real sockets and threads.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

#include "core/real_loop.h"

namespace holdfast::test {

// Longer than any step takes on a slow and busy machine. A test that waits this long has failed.
inline constexpr std::chrono::seconds kPatience{20};

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  RealLoop& loop() { return loop_; }

  // Runs a function on the loop and waits for its end.
  template <class Function>
  auto run(Function function) -> decltype(function()) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    loop_.post([&task] { task(); });
    if (result.wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("the loop is stuck");
    }
    return result.get();
  }

 private:
  RealLoop loop_;
  std::thread thread_;
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
