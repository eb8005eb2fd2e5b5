// Runs several tasks at the same time on the loop.
//
//   std::vector<std::function<Task<void>()>> tasks = ...;
//   auto all = side_by_side(loop, 16, std::move(tasks));
//   co_await all;                       // returns when all have ended
//
// Loop only. The first exception is thrown again once all tasks have ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast {

namespace internal {

struct SideBySide {
  Loop& loop;
  std::vector<std::function<Task<void>()>> tasks;
  std::size_t next = 0;
  std::size_t channels = 0;  // that still run
  std::function<void(Unit)> done = nullptr;
  std::exception_ptr exception = nullptr;
};

inline Task<void> run_channel(std::shared_ptr<SideBySide> all) {
  while (all->next < all->tasks.size()) {
    const std::size_t mine = all->next++;
    try {
      auto task = all->tasks[mine]();
      co_await task;
    } catch (...) {
      if (!all->exception) all->exception = std::current_exception();
    }
  }
  if (--all->channels == 0) all->loop.post([done = std::move(all->done)] { done(Unit{}); });
}

}  // namespace internal

// At most `channels` of them run at a time. They start in their order.
inline Task<void> side_by_side(Loop& loop, std::size_t channels,
                               std::vector<std::function<Task<void>()>> tasks) {
  if (tasks.empty()) co_return;
  if (tasks.size() == 1) {
    auto task = tasks.front()();
    co_await task;
    co_return;
  }
  const auto all = std::make_shared<internal::SideBySide>(
      internal::SideBySide{.loop = loop, .tasks = std::move(tasks)});
  all->channels = std::clamp<std::size_t>(channels, 1, all->tasks.size());
  Callback<Unit> ended([&all](Callback<Unit>::Done done) {
    all->done = std::move(done);
    const std::size_t started = all->channels;
    for (std::size_t channel = 0; channel < started; ++channel) spawn(internal::run_channel(all));
  });
  co_await ended;
  if (all->exception) std::rethrow_exception(all->exception);
}

}  // namespace holdfast
