// The only part of a transport that I/O threads may touch. They post to the loop through it while
// the loop exists. It also counts the exchanges that they still work on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <utility>

#include "core/loop.h"
#include "core/thread_annotations.h"

namespace holdfast::http {

class Outbox {
 public:
  explicit Outbox(Loop& loop) : loop_(&loop) {}

  // Any thread.
  void post(Loop::Callback callback) {
    MutexLock lock(mutex_);
    if (loop_ != nullptr) loop_->post(std::move(callback));
  }
  // An exchange begins or has ended. Any thread.
  void begin() {
    MutexLock lock(mutex_);
    ++unfinished_;
  }
  void end() {
    MutexLock lock(mutex_);
    --unfinished_;
    ended_.notify_all();
  }
  std::size_t unfinished() const {
    MutexLock lock(mutex_);
    return unfinished_;
  }
  // The loop goes: nothing is posted any more. Waits for the exchanges, for 2 s at most.
  void close() {
    const auto limit = std::chrono::steady_clock::now() + kDestructionLimit;
    MutexLock lock(mutex_);
    loop_ = nullptr;
    while (unfinished_ > 0 && ended_.wait_until(mutex_, limit) == std::cv_status::no_timeout) {
    }
  }

 private:
  static constexpr std::chrono::seconds kDestructionLimit{2};

  mutable Mutex mutex_;
  std::condition_variable_any ended_;
  Loop* loop_ HOLDFAST_GUARDED_BY(mutex_);
  std::size_t unfinished_ HOLDFAST_GUARDED_BY(mutex_) = 0;  // exchanges of the wire
};

}  // namespace holdfast::http
