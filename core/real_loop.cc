#include "core/real_loop.h"

#include <utility>

#include "core/steady_now.h"

namespace holdfast {

SteadyTime RealLoop::now() const { return steady_now(); }

bool RealLoop::on_loop() const { return thread_.load() == std::this_thread::get_id(); }

// Both signal under the lock. So when a callback runs, its poster no longer uses the loop, and the
// callback may destroy it.

void RealLoop::post(Callback callback) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  posted_.push_back(std::move(callback));
  if (posted_.size() == 1) wakeup_.signal();
}

void RealLoop::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  wakeup_.signal();
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

// False: stopped.
bool RealLoop::take_posted(std::vector<Callback>& batch) {
  MutexLock lock(mutex_);
  batch.swap(posted_);
  return !stopped_;
}

void RealLoop::run_due_timers() {
  // Only timers that were due when the turn began. So a timer that re-arms itself at once cannot
  // starve posted callbacks.
  const SteadyTime due = now();
  while (!timers_.empty() && timers_.begin()->first <= due) {
    const auto first = timers_.begin();
    const Timer timer = std::move(first->second);
    timer_index_.erase(timer.id);
    timers_.erase(first);
    run_callback(timer.callback);
  }
}

void RealLoop::run() {
  thread_ = std::this_thread::get_id();
  std::vector<Callback> batch;
  while (take_posted(batch)) {
    if (batch.empty()) {
      wakeup_.wait(timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first));
      if (!take_posted(batch)) break;
    }
    for (const Callback& callback : batch) run_callback(callback);
    batch.clear();
    run_due_timers();
  }
  thread_ = std::thread::id{};
}

}  // namespace holdfast
