#include "tests/support/manual_loop.h"

#include <algorithm>

namespace holdfast::test {

TimerId ManualLoop::call_at(SteadyTime when, Callback callback) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(callback));
  return id;
}

void ManualLoop::cancel(TimerId timer) {
  std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
}

void ManualLoop::run_ready() {
  while (true) {
    if (!posted_.empty()) {
      const Callback callback = std::move(posted_.front());
      posted_.pop_front();
      callback();
    } else if (!timers_.empty() && timers_.begin()->first.first <= now_) {
      const Callback callback = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      callback();
    } else {
      return;
    }
  }
}

void ManualLoop::advance(Duration by) {
  const SteadyTime until = now_ + by;
  run_ready();
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    now_ = std::max(now_, timers_.begin()->first.first);
    run_ready();
  }
  now_ = until;
}

bool ManualLoop::run_until(const std::function<bool()>& done, Duration limit) {
  const SteadyTime until = now_ + limit;
  run_ready();
  while (!done()) {
    if (timers_.empty() || timers_.begin()->first.first > until) return false;
    now_ = std::max(now_, timers_.begin()->first.first);
    run_ready();
  }
  return true;
}

}  // namespace holdfast::test
