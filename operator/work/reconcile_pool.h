// The generic controller: takes keys from a queue and keeps some reconciles in flight: at most
// `workers` of one tenant, twice as many in all, shared as FairShare has it. A reconcile is a
// coroutine on the loop, so one that waits holds up no other key; the queue sees to it that one key
// is reconciled once at a time.
//
// What becomes of the key afterwards:
//   error            -> again after its back-off (an exception counts as an error)
//   terminal error   -> not again until something changes
//   wake_after       -> forgotten failures, again after that time; a time that has passed already
//                       comes back by the back-off, so that it cannot spin
//   nothing          -> forgotten failures
// With an error, wake_after is when it is tried again at the latest, a second being the least; an
// error that says how long to wait is not tried again before.
//
//   ReconcilePool pool({loop, log}, {}, [&](std::string key) { return reconcile(std::move(key));
//   }); informer.on_change([&](const Change& change) { pool.queue().add(...); }); pool.start(); //
//   once the caches are synced pool.stop([&] { ... });
//
// Loop only. May be destroyed while reconciles are in flight: they run to their end, and their
// results are dropped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/log.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/work/work_queue.h"

namespace holdfast::controller {

struct ReconcileResult {
  std::optional<Error> error;
  bool terminal = false;  // of the error: trying again cannot help
  std::optional<Duration> wake_after;
  Priority priority = Priority::kFresh;  // of the next look
};

class ReconcilePool {
 public:
  using Reconcile = std::function<Task<ReconcileResult>(std::string key)>;

  struct Dependencies {
    Loop& loop;
    Log log;
  };
  struct Config {
    int workers = 16;
    WorkQueue::Config queue;
  };
  // Any may be empty. `result` is success, error, requeue_after or requeue.
  struct Metrics {
    WorkQueue::Metrics queue;
    std::function<void(int active)> on_active;
    std::function<void(const char* result, Duration took)> on_result;
    std::function<void()> on_terminal_error;
    std::function<void()> on_exception;
  };

  ReconcilePool(Dependencies dependencies, Config config, Reconcile reconcile,
                Metrics metrics = {});
  ~ReconcilePool();
  ReconcilePool(const ReconcilePool&) = delete;
  ReconcilePool& operator=(const ReconcilePool&) = delete;

  // Keys may be added before start(); they wait.
  WorkQueue& queue();
  void start();
  int active() const;

  // No new reconciles; what is in flight goes on. `on_idle` is called in a later turn, once the
  // last has ended. May be called again.
  void stop(std::function<void()> on_idle);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
