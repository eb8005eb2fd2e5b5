// The generic controller: takes keys from a queue and reconciles them. At most `workers` reconciles
// of one tenant are in flight, and twice as many in all (FairShare). A reconcile is a coroutine on
// the loop, so a waiting reconcile blocks no other key. The queue ensures that each key has at most
// one reconcile at a time.
//
// The result decides about the key:
//   error            -> retried after its back-off (an exception counts as an error)
//   wake_after       -> failures are forgotten, unless it decided nothing; retried after that time.
//                       If the time has passed already, the back-off applies, so that the key
//                       cannot spin
//   nothing          -> failures are forgotten
// With an error, wake_after limits the back-off, but to no less than a second. An error with a
// Retry-After is not retried before it.
//
//   ReconcilePool pool({loop, log}, {}, [&](std::string key) { return reconcile(key); });
//   informer.on_change([&](const Change& change) { pool.queue().add(...); });
//   pool.start();                       // once the caches are synced
//   pool.stop([&] { ... });
//
// Loop only. May be destroyed while reconciles are in flight: they run to their end, and their
// results are dropped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/controller/work_queue.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast::controller {

struct ReconcileResult {
  std::optional<Error> error;
  std::optional<Duration> wake_after;
  Priority priority = Priority::kFresh;  // of the next reconcile
  // False: it waits for something and decided nothing. Failures before it still count.
  bool decided = true;
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

  // Runs in a later turn in which no reconcile is in flight, once.
  void when_idle(std::function<void()> idle);

  // Starts no further reconcile. Those in flight go on. `on_idle` runs in a later turn, after the
  // last has ended. May be called again.
  void stop(std::function<void()> on_idle);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
