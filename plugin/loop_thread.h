// The event loop on a thread of its own, for a main thread that waits for each answer.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/real_loop.h"
#include "core/task.h"

namespace holdfast::plugin {

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  Loop& loop() { return loop_; }

  // Runs a function on the loop and waits for its end. Not on the loop.
  template <class Function>
  auto run(Function function) -> decltype(function()) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    loop_.post([&task] { task(); });
    return result.get();
  }

  // Starts the task that `start` returns on the loop, and waits for its value. Not on the loop.
  template <class T>
  T await(std::function<Task<T>()> start) {
    std::promise<T> promise;
    loop_.post([&] { spawn(deliver(start, promise)); });
    return promise.get_future().get();
  }

 private:
  template <class T>
  static Task<void> deliver(const std::function<Task<T>()>& start, std::promise<T>& promise) {
    Task<T> task = start();
    T value = co_await task;
    promise.set_value(std::move(value));
  }

  RealLoop loop_;
  std::thread thread_;
};

}  // namespace holdfast::plugin
