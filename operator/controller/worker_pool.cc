#include "operator/controller/worker_pool.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace holdfast::controller {
namespace {

// A reconcile that fails does so at most this often for what is due, whatever it asks for.
constexpr std::chrono::seconds kSoonestAfterError{1};

}  // namespace

// Shared with the reconciles in flight, which may outlive the pool.
struct WorkerPool::State : std::enable_shared_from_this<WorkerPool::State> {
  State(Dependencies dependencies, Config configured, Reconcile function, Metrics hooks)
      : deps(std::move(dependencies)),
        config(std::move(configured)),
        reconcile(std::move(function)),
        metrics(std::move(hooks)),
        queue(
            deps.loop, config.queue, [this] { dispatch(); }, metrics.queue) {}

  void dispatch();
  void dispatch_later();
  void settle(const std::string& key, const ReconcileResult& result, Duration took);
  void tell_idle();
  void set_active(int count);
  static Task<void> run(std::shared_ptr<State> state, std::string key);

  Dependencies deps;
  const Config config;
  const Reconcile reconcile;
  const Metrics metrics;
  Queue queue;
  bool started = false;
  bool stopping = false;
  bool dispatch_posted = false;
  int active = 0;
  std::vector<std::function<void()>> idle_handlers;
};

void WorkerPool::State::set_active(int count) {
  active = count;
  if (metrics.on_active) metrics.on_active(active);
}

void WorkerPool::State::dispatch() {
  if (!started) return;
  // Reconciles that end without waiting for anything must not keep the loop from its other work:
  // one turn starts so many, the next goes on.
  for (int begun = 0; active < config.workers; ++begun) {
    if (begun == config.workers) return dispatch_later();
    std::optional<std::string> key = queue.take();
    if (!key) break;
    set_active(active + 1);
    spawn(run(shared_from_this(), std::move(*key)));
  }
  tell_idle();
}

void WorkerPool::State::dispatch_later() {
  if (std::exchange(dispatch_posted, true)) return;
  deps.loop.post([weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->dispatch_posted = false;
    state->dispatch();
  });
}

Task<void> WorkerPool::State::run(std::shared_ptr<State> state, std::string key) {
  const SteadyTime begun = state->deps.loop.now();
  ReconcileResult result;
  std::optional<std::string> thrown;
  try {
    auto task = state->reconcile(key);
    result = co_await task;
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "not a std::exception";
  }
  if (thrown) {
    state->deps.log.error("reconcile threw an exception", {{"key", key}, {"exception", *thrown}});
    if (state->metrics.on_exception) state->metrics.on_exception();
    result = {};
    result.error = make_error(ErrorCode::kTransient, *thrown);
  }
  state->settle(key, result, state->deps.loop.now() - begun);
}

void WorkerPool::State::settle(const std::string& key, const ReconcileResult& result,
                               Duration took) {
  const char* label = "success";
  if (result.error) {
    label = "error";
    if (result.terminal) {
      queue.forget(key);
      if (metrics.on_terminal_error) metrics.on_terminal_error();
    } else {
      queue.add_rate_limited(key);
      // What fails may be less urgent than what is due.
      if (result.wake_after) {
        queue.add_after(key, std::max<Duration>(*result.wake_after, kSoonestAfterError));
      }
    }
  } else if (result.wake_after && *result.wake_after > Duration::zero()) {
    label = "requeue_after";
    queue.forget(key);
    queue.add_after(key, *result.wake_after);
  } else if (result.wake_after) {
    label = "requeue";
    queue.add_rate_limited(key);
  } else {
    queue.forget(key);
  }
  queue.done(key);
  set_active(active - 1);
  if (metrics.on_result) metrics.on_result(label, took);
  dispatch_later();
}

void WorkerPool::State::tell_idle() {
  if (!stopping || active > 0 || idle_handlers.empty()) return;
  if (started && queue.depth() > 0) return;
  for (const auto& handler : std::exchange(idle_handlers, {})) handler();
}

WorkerPool::WorkerPool(Dependencies dependencies, Config config, Reconcile reconcile,
                       Metrics metrics)
    : state_(std::make_shared<State>(std::move(dependencies), std::move(config),
                                     std::move(reconcile), std::move(metrics))) {}

WorkerPool::~WorkerPool() {
  state_->started = false;
  state_->queue.shut_down(/*drain=*/false);
}

Queue& WorkerPool::queue() { return state_->queue; }

void WorkerPool::start() {
  if (state_->stopping || std::exchange(state_->started, true)) return;
  state_->dispatch_later();
}

int WorkerPool::active() const { return state_->active; }

void WorkerPool::stop(bool drain, std::function<void()> on_idle) {
  state_->stopping = true;
  state_->queue.shut_down(drain);
  if (on_idle) state_->idle_handlers.push_back(std::move(on_idle));
  state_->deps.loop.post([weak = std::weak_ptr<State>(state_)] {
    if (const std::shared_ptr<State> state = weak.lock()) {
      state->dispatch();
      state->tell_idle();
    }
  });
}

}  // namespace holdfast::controller
