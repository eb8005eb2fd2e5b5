// The Loop of a real process: timers and a queue of posted callbacks, run by one thread. Its time
// goes on while the machine is suspended (steady_now.h). Timers that became due meanwhile run after
// it wakes.
#pragma once

#include <atomic>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/loop.h"
#include "core/thread_annotations.h"
#include "core/wakeup.h"

namespace holdfast {

class RealLoop : public Loop {
 public:
  // Runs until stop(). The calling thread becomes the loop's thread.
  void run();

  // Makes run() return after the callback in progress. Drops callbacks that are posted later. Any
  // thread.
  void stop();

  SteadyTime now() const override;
  void post(Callback callback) override;
  TimerId call_at(SteadyTime when, Callback callback) override;
  void cancel(TimerId timer) override;
  bool on_loop() const override;

  // How long the current callback has been running; zero between callbacks. Any thread; for the
  // liveness probe.
  Duration busy_for() const;

 private:
  struct Timer {
    TimerId id;
    Callback callback;
  };

  bool take_posted(std::vector<Callback>& batch) HOLDFAST_EXCLUDES(mutex_);
  void run_due_timers();
  void run_callback(const Callback& callback);

  // Loop only.
  std::multimap<SteadyTime, Timer> timers_;
  std::unordered_map<TimerId, std::multimap<SteadyTime, Timer>::iterator> timer_index_;
  TimerId next_timer_ = 1;

  // Shared.
  Wakeup wakeup_;
  Mutex mutex_;
  std::vector<Callback> posted_ HOLDFAST_GUARDED_BY(mutex_);
  bool stopped_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::atomic<std::thread::id> thread_{};
  std::atomic<std::int64_t> busy_since_ns_{0};
};

}  // namespace holdfast
