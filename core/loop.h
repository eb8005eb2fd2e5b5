// The one event loop. Everything above http/ runs on it and needs no lock; I/O threads only post().
// RealLoop runs on a thread of the caller. The simulator has its own Loop over virtual time.
//
//   loop.call_after(5s, [&] { ... });   // on the loop
//   loop.post([&] { ... });             // from any thread
#pragma once

#include <cstdint>
#include <functional>

#include "core/time.h"

namespace holdfast {

using TimerId = std::uint64_t;  // 0 is never a timer

class Loop {
 public:
  using Callback = std::function<void()>;

  virtual ~Loop() = default;

  // The steady time. Any thread.
  virtual SteadyTime now() const = 0;

  // Runs the callback on the loop, after those posted before it. Any thread.
  virtual void post(Callback callback) = 0;

  // Runs the callback on the loop at or after `when`. Due timers run in the order of their times;
  // equal times in the order of the calls. Loop thread only.
  virtual TimerId call_at(SteadyTime when, Callback callback) = 0;

  // No effect if the timer has run or is unknown (0 included). Loop thread only.
  virtual void cancel(TimerId timer) = 0;

  // True on the thread that runs the loop. Loop-only functions assert it.
  virtual bool on_loop() const = 0;

  TimerId call_after(Duration delay, Callback callback) {
    return call_at(now() + delay, std::move(callback));
  }
};

}  // namespace holdfast
