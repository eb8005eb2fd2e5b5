// A Loop over virtual time for tests: nothing runs until the test says so.
#pragma once

#include <deque>
#include <map>

#include "core/loop.h"

namespace holdfast::test {

class ManualLoop : public Loop {
 public:
  SteadyTime now() const override { return now_; }
  void post(Callback callback) override { posted_.push_back(std::move(callback)); }
  TimerId call_at(SteadyTime when, Callback callback) override;
  void cancel(TimerId timer) override;
  bool on_loop() const override { return true; }

  // Runs posted callbacks and due timers, until none are left.
  void run_ready();
  // Advances through all timers up to now + by, and runs everything that becomes ready.
  void advance(Duration by);
  // The process is paused: time passes, and nothing has run yet when it goes on.
  void pause(Duration by) { now_ += by; }
  // Advances from timer to timer until `done`, at most `limit`. False: the limit came first.
  bool run_until(const std::function<bool()>& done, Duration limit);
  std::size_t timers() const { return timers_.size(); }

 private:
  SteadyTime now_{std::chrono::hours(1)};
  std::deque<Callback> posted_;
  std::map<std::pair<SteadyTime, TimerId>, Callback> timers_;
  TimerId next_timer_ = 1;
};

}  // namespace holdfast::test
