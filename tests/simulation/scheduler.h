// Virtual time: one queue of events for the whole world, and a Loop for each simulated process.
//
// Events run in the order of (time, when they were asked for), one at a time, on the caller's
// thread: the same calls give the same run. Nothing here reads a real clock.
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
  using EventId = std::uint64_t;  // 0 is never one

  // Since the world began.
  Duration now() const { return now_; }
  EventId at(Duration when, Callback callback);  // in the past: now
  EventId after(Duration delay, Callback callback) { return at(now_ + delay, std::move(callback)); }
  void cancel(EventId event);

  // Runs what is due up to `until`, which then is the time.
  void run_until(Duration until);
  // Ends run_until() after the event that runs now.
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

// One process's loop, with a steady clock of its own. A paused loop runs nothing; its clock goes
// on, and everything that became due runs when it is resumed.
class SimLoop : public Loop {
 public:
  struct Clock {
    Duration offset = std::chrono::hours(1);
    std::int64_t rate_ppm = 1'000'000;  // parts per million of the world's
  };
  // Called instead of going on when so many turns run at one instant that the loop must be hot.
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
  // No event of the world's runs it any more; run_posted() alone does.
  void detach();
  // Runs what is posted, and what that posts, but no timers: how a dead process is taken apart.
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
