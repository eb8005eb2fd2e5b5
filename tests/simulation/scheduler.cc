#include "tests/simulation/scheduler.h"

#include <algorithm>
#include <utility>

namespace holdfast::simulation {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
// An event's id is its number, and below that its slot: a million may be pending.
constexpr int kSlotBits = 20;
constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

std::size_t slot_of(std::uint64_t event) { return static_cast<std::size_t>(event & kSlotMask); }

// `time` at another rate, exact and without overflow.
std::int64_t scaled(std::int64_t time, std::int64_t multiply, std::int64_t divide) {
  return time / divide * multiply + time % divide * multiply / divide;
}

}  // namespace

Scheduler::EventId Scheduler::at(Duration when, Callback callback) {
  std::size_t slot = slots_.size();
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  const EventId id = (++sequence_ << kSlotBits) | slot;
  slots_[slot] = {id, std::move(callback)};
  heap_.push_back({std::max(when, now_), id});
  std::push_heap(heap_.begin(), heap_.end(), later);
  return id;
}

void Scheduler::cancel(EventId event) {
  const std::size_t slot = slot_of(event);
  if (event == 0 || slots_[slot].id != event) return;
  // The entry in the heap stays, and is passed over.
  slots_[slot] = {};
  free_.push_back(slot);
}

void Scheduler::run_until(Duration until) {
  while (!stopped_ && !heap_.empty() && heap_.front().when <= until) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    Slot& slot = slots_[slot_of(entry.id)];
    if (slot.id != entry.id) continue;  // cancelled
    now_ = entry.when;
    const Callback callback = std::move(slot.callback);
    slot = {};
    free_.push_back(slot_of(entry.id));
    ++events_run_;
    callback();
  }
  if (!stopped_) now_ = std::max(now_, until);
}

SimLoop::SimLoop(Scheduler& scheduler, Clock clock, std::function<void()> on_hot_loop)
    : scheduler_(scheduler), clock_(clock), on_hot_loop_(std::move(on_hot_loop)) {}

SimLoop::~SimLoop() { scheduler_.cancel(armed_); }

SteadyTime SimLoop::now() const {
  return SteadyTime(clock_.offset +
                    Duration(scaled(scheduler_.now().count(), clock_.rate_ppm, kMillion)));
}

// The first instant of the world at which the own clock shows `local`.
Duration SimLoop::global_of(SteadyTime local) const {
  const std::int64_t own = (local.time_since_epoch() - clock_.offset).count();
  std::int64_t global = scaled(own, kMillion, clock_.rate_ppm);
  while (scaled(global, clock_.rate_ppm, kMillion) < own) ++global;
  return Duration(global);
}

void SimLoop::post(Callback callback) {
  posted_.push_back(std::move(callback));
  if (!running_) arm();
}

TimerId SimLoop::call_at(SteadyTime when, Callback callback) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(callback));
  timer_times_.emplace(id, when);
  if (!running_) arm();
  return id;
}

void SimLoop::cancel(TimerId timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase(std::pair(found->second, timer));
  timer_times_.erase(found);
}

void SimLoop::resume() {
  paused_ = false;
  arm();
}

void SimLoop::detach() {
  detached_ = true;
  scheduler_.cancel(std::exchange(armed_, 0));
}

void SimLoop::arm() {
  if (paused_ || detached_) return;
  Duration due = scheduler_.now();
  if (posted_.empty()) {
    if (timers_.empty()) return;
    due = std::max(due, global_of(timers_.begin()->first.first));
  }
  if (armed_ != 0 && armed_at_ <= due) return;
  scheduler_.cancel(armed_);
  armed_at_ = due;
  armed_ = scheduler_.at(due, [this] { wake(); });
}

void SimLoop::wake() {
  armed_ = 0;
  if (paused_ || detached_) return;
  running_ = true;
  const SteadyTime time = now();
  for (int turns = 0; !paused_ && !detached_; ++turns) {
    if (turns == kMostTurnsAtOnce) {
      on_hot_loop_();
      break;
    }
    if (!posted_.empty()) {
      const Callback callback = std::move(posted_.front());
      posted_.pop_front();
      callback();
    } else if (!timers_.empty() && timers_.begin()->first.first <= time) {
      auto timer = timers_.extract(timers_.begin());
      timer_times_.erase(timer.key().second);
      timer.mapped()();
    } else {
      break;
    }
  }
  running_ = false;
  arm();
}

void SimLoop::run_posted() {
  run_as_loop([this] {
    while (!posted_.empty()) {
      const Callback callback = std::move(posted_.front());
      posted_.pop_front();
      callback();
    }
  });
}

void SimLoop::run_as_loop(const Callback& callback) {
  const bool before = std::exchange(running_, true);
  callback();
  running_ = before;
  if (!running_) arm();
}

}  // namespace holdfast::simulation
