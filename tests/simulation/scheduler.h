// Virtual time: one queue of events for the whole world, and a Loop for each simulated process.
//
// Events run one at a time on the caller's thread, ordered by (time, order of the calls). So the
// same calls give the same run. Nothing reads a real clock.
//
//   Scheduler scheduler;
//   SimLoop loop(scheduler, {.offset = 3h, .rate_ppm = 1'050'000});  // 5 % fast
//   loop.post([&] { ... });
//   scheduler.run_until(1h);
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/loop.h"

namespace holdfast::simulation {

class Scheduler {
 public:
  using Callback = std::function<void()>;
  using EventId = std::uint64_t;  // 0 is never an event

  // Since the world began.
  Duration now() const { return now_; }
  EventId at(Duration when, Callback callback);  // in the past: now
  EventId after(Duration delay, Callback callback) { return at(now_ + delay, std::move(callback)); }
  void cancel(EventId event);

  // Runs the events that are due up to `until`. Then the time is `until`.
  void run_until(Duration until);
  // Ends run_until() after the current event.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  std::uint64_t events_run() const { return events_run_; }

 private:
  struct Entry {
    Duration when;
    EventId id;  // rises, so that equal times run in the order of their calls; names its slot
  };
  struct Slot {
    EventId id = 0;
    Callback callback;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.id > b.id;
  }

  Duration now_{0};
  bool stopped_ = false;
  std::uint64_t events_run_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
};

// One process's loop, with a steady clock of its own. A paused loop runs nothing, but its clock
// goes on. On resume, everything due runs.
class SimLoop : public Loop {
 public:
  struct Clock {
    Duration offset = std::chrono::hours(1);
    std::int64_t rate_ppm = 1'000'000;  // parts per million of the world's
  };
  // Called when so many turns run at one instant that the loop must be spinning. The loop then
  // stops.
  static constexpr int kMostTurnsAtOnce = 200'000;

  SimLoop(Scheduler& scheduler, Clock clock, std::function<void()> on_hot_loop);
  ~SimLoop() override;

  SteadyTime now() const override;
  void post(Callback callback) override;
  TimerId call_at(SteadyTime when, Callback callback) override;
  void cancel(TimerId timer) override;
  bool on_loop() const override { return running_; }

  void pause() { paused_ = true; }
  void resume();
  bool paused() const { return paused_; }
  // The world's events no longer run it; only run_posted() does.
  void detach();
  // Runs posted callbacks, and those that they post, but no timers. For the destruction of a dead
  // process.
  void run_posted();
  // Runs `callback` as if on the loop.
  void run_as_loop(const Callback& callback);

 private:
  Duration global_of(SteadyTime local) const;
  void arm();
  void wake();

  Scheduler& scheduler_;
  const Clock clock_;
  const std::function<void()> on_hot_loop_;
  bool paused_ = false;
  bool detached_ = false;
  bool running_ = false;
  std::deque<Callback> posted_;
  std::map<std::pair<SteadyTime, TimerId>, Callback> timers_;
  std::map<TimerId, SteadyTime> timer_times_;
  TimerId next_timer_ = 1;
  Scheduler::EventId armed_ = 0;
  Duration armed_at_{0};
};

}  // namespace holdfast::simulation
