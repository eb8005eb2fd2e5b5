// The event loop on a thread of its own, for another thread that waits for each answer. The
// plugin's commands and tests with real sockets use it.
//
//   LoopThread thread;
//   const int answer = thread.run([&] { return client.ask(); });
//
// run() and await() are for the other thread, not for the loop. With a limit they throw
// std::runtime_error if the loop has not answered by then: a test would wait for ever.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/real_loop.h"
#include "core/task.h"

namespace holdfast {

class LoopThread {
 public:
  explicit LoopThread(std::optional<std::chrono::seconds> limit = std::nullopt)
      : limit_(limit), thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  RealLoop& loop() { return loop_; }

  // Runs a function on the loop and waits for its end.
  template <class Function>
  auto run(Function function) -> decltype(function()) {
    using Task = std::packaged_task<decltype(function())()>;
    const auto task = std::make_shared<Task>(std::move(function));
    auto result = task->get_future();
    loop_.post([task] { (*task)(); });
    return wait(result);
  }

  // Starts the task that `start` returns on the loop, and waits for its value.
  template <class T>
  T await(std::function<Task<T>()> start) {
    const auto promise = std::make_shared<std::promise<T>>();
    auto result = promise->get_future();
    loop_.post([start = std::move(start), promise] { spawn(deliver(start, promise)); });
    return wait(result);
  }

 private:
  template <class T>
  T wait(std::future<T>& result) const {
    if (limit_ && result.wait_for(*limit_) != std::future_status::ready) {
      throw std::runtime_error("the loop is stuck");
    }
    return result.get();
  }
  template <class T>
  static Task<void> deliver(std::function<Task<T>()> start,
                            std::shared_ptr<std::promise<T>> promise) {
    Task<T> task = start();
    T value = co_await task;
    promise->set_value(std::move(value));
  }

  const std::optional<std::chrono::seconds> limit_;
  RealLoop loop_;
  std::thread thread_;
};

}  // namespace holdfast
