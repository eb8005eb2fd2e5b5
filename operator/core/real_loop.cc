#include "operator/core/real_loop.h"

#include <utility>

namespace holdfast {

SteadyTime RealLoop::now() const { return std::chrono::steady_clock::now(); }

bool RealLoop::on_loop() const { return thread_.load() == std::this_thread::get_id(); }

void RealLoop::post(Callback callback) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    posted_.push_back(std::move(callback));
  }
  wake_.notify_one();
}

void RealLoop::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
}

TimerId RealLoop::call_at(SteadyTime when, Callback callback) {
  const TimerId id = next_timer_++;
  timer_index_.emplace(id, timers_.emplace(when, Timer{id, std::move(callback)}));
  return id;
}

void RealLoop::cancel(TimerId timer) {
  const auto found = timer_index_.find(timer);
  if (found == timer_index_.end()) return;
  timers_.erase(found->second);
  timer_index_.erase(found);
}

Duration RealLoop::busy_for() const {
  const std::int64_t since = busy_since_ns_.load();
  if (since == 0) return Duration::zero();
  return now().time_since_epoch() - Duration(since);
}

void RealLoop::run_callback(const Callback& callback) {
  busy_since_ns_ = now().time_since_epoch().count();
  callback();
  busy_since_ns_ = 0;
}

void RealLoop::run() {
  thread_ = std::this_thread::get_id();
  std::vector<Callback> batch;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [this] { return stopped_ || !posted_.empty(); };
      if (timers_.empty()) {
        wake_.wait(lock, ready);
      } else {
        wake_.wait_until(lock, timers_.begin()->first, ready);
      }
      if (stopped_) break;
      batch.swap(posted_);
    }
    for (const Callback& callback : batch) run_callback(callback);
    batch.clear();
    // Only timers that were due when the turn began: one that re-arms itself at once cannot keep
    // posted callbacks waiting.
    const SteadyTime due = now();
    while (!timers_.empty() && timers_.begin()->first <= due) {
      const auto first = timers_.begin();
      const Timer timer = std::move(first->second);
      timer_index_.erase(timer.id);
      timers_.erase(first);
      run_callback(timer.callback);
    }
  }
  thread_ = std::thread::id{};
}

}  // namespace holdfast
