// The Loop of a real process: a heap of timers and a queue of posted callbacks, run by one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "operator/core/loop.h"

namespace holdfast {

class RealLoop : public Loop {
 public:
  // Runs until stop(); the calling thread is the loop's from here on.
  void run();

  // Makes run() return after the callback in progress; what is posted later is dropped. Any thread.
  void stop();

  SteadyTime now() const override;
  void post(Callback callback) override;
  TimerId call_at(SteadyTime when, Callback callback) override;
  void cancel(TimerId timer) override;
  bool on_loop() const override;

  // How long the callback that runs now has been running, zero between callbacks. Any thread: the
  // liveness probe asks it.
  Duration busy_for() const;

 private:
  struct Timer {
    TimerId id;
    Callback callback;
  };

  void run_callback(const Callback& callback);

  // The loop's.
  std::multimap<SteadyTime, Timer> timers_;
  std::unordered_map<TimerId, std::multimap<SteadyTime, Timer>::iterator> timer_index_;
  TimerId next_timer_ = 1;

  // Shared.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Callback> posted_;
  bool stopped_ = false;
  std::atomic<std::thread::id> thread_{};
  std::atomic<std::int64_t> busy_since_ns_{0};
};

}  // namespace holdfast
