#include "client/controller/reconcile_pool.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "client/controller/fair_share.h"
#include "client/kube/object.h"

namespace holdfast::controller {
namespace {

// A failing reconcile with due work is retried at most this often.
constexpr std::chrono::seconds kSoonestAfterError{1};

}  // namespace

// Shared with the reconciles in flight, which may outlive the pool.
struct ReconcilePool::State : std::enable_shared_from_this<ReconcilePool::State> {
  State(Dependencies dependencies, Config configured, Reconcile function, Metrics hooks)
      : deps(std::move(dependencies)),
        config(std::move(configured)),
        reconcile(std::move(function)),
        metrics(std::move(hooks)),
        share(config.workers),
        queue(
            deps.loop, config.queue, [this] { dispatch(); }, metrics.queue) {}

  void dispatch();
  void dispatch_later();
  void settle(const std::string& key, const ReconcileResult& result, Duration took);
  void notify_idle();
  void notify_idle_later();
  void report_active() {
    if (metrics.on_active) metrics.on_active(share.in_use());
  }
  static Task<void> run(std::shared_ptr<State> state, std::string key);

  Dependencies deps;
  const Config config;
  const Reconcile reconcile;
  const Metrics metrics;
  FairShare share;  // of the reconciles in flight
  WorkQueue queue;
  bool started = false;
  bool stopping = false;
  bool dispatch_posted = false;
  std::vector<std::function<void()>> pause_handlers;
  std::vector<std::function<void()>> idle_handlers;  // once it has stopped
};

void ReconcilePool::State::dispatch() {
  if (!started) return;
  // Reconciles that end without a wait must not starve the loop. So each turn starts a limited
  // number.
  const auto admits = [this](const std::string& tenant) { return share.admits(tenant); };
  for (int begun = 0;; ++begun) {
    if (begun == config.workers) return dispatch_later();
    std::optional<std::string> key = queue.take(admits);
    if (!key) break;
    share.begin(kube::namespace_of(*key));
    report_active();
    spawn(run(shared_from_this(), std::move(*key)));
  }
  notify_idle();
}

void ReconcilePool::State::dispatch_later() {
  if (std::exchange(dispatch_posted, true)) return;
  deps.loop.post([weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->dispatch_posted = false;
    state->dispatch();
  });
}

Task<void> ReconcilePool::State::run(std::shared_ptr<State> state, std::string key) {
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

void ReconcilePool::State::settle(const std::string& key, const ReconcileResult& result,
                                  Duration took) {
  const char* label = "success";
  if (result.error) {
    label = "error";
    const Duration asked = result.error->retry_after.value_or(Duration::zero());
    queue.add_rate_limited(key, asked, result.priority);
    // A failing job may be less urgent than a due one.
    if (result.wake_after) {
      queue.add_after(key, std::max<Duration>(*result.wake_after, kSoonestAfterError));
    }
  } else if (result.wake_after && *result.wake_after > Duration::zero()) {
    label = "requeue_after";
    if (result.decided) queue.forget(key);
    queue.add_after(key, *result.wake_after, result.priority);
  } else if (result.wake_after) {
    label = "requeue";
    queue.add_rate_limited(key, Duration::zero(), result.priority);
  } else {
    queue.forget(key);
  }
  queue.done(key);
  share.end(kube::namespace_of(key));
  report_active();
  if (metrics.on_result) metrics.on_result(label, took);
  dispatch_later();
}

void ReconcilePool::State::notify_idle() {
  if (share.in_use() > 0) return;
  for (const auto& handler : std::exchange(pause_handlers, {})) handler();
  if (!stopping) return;
  for (const auto& handler : std::exchange(idle_handlers, {})) handler();
}

void ReconcilePool::State::notify_idle_later() {
  deps.loop.post([weak = weak_from_this()] {
    if (const std::shared_ptr<State> state = weak.lock()) state->notify_idle();
  });
}

ReconcilePool::ReconcilePool(Dependencies dependencies, Config config, Reconcile reconcile,
                             Metrics metrics)
    : state_(std::make_shared<State>(std::move(dependencies), std::move(config),
                                     std::move(reconcile), std::move(metrics))) {}

ReconcilePool::~ReconcilePool() {
  state_->started = false;
  state_->pause_handlers.clear();
  state_->idle_handlers.clear();
  state_->queue.shut_down();
}

WorkQueue& ReconcilePool::queue() { return state_->queue; }

void ReconcilePool::start() {
  if (state_->stopping || std::exchange(state_->started, true)) return;
  state_->dispatch_later();
}

int ReconcilePool::active() const { return state_->share.in_use(); }

void ReconcilePool::when_idle(std::function<void()> idle) {
  state_->pause_handlers.push_back(std::move(idle));
  state_->notify_idle_later();
}

void ReconcilePool::stop(std::function<void()> on_idle) {
  state_->stopping = true;
  state_->queue.shut_down();
  if (on_idle) state_->idle_handlers.push_back(std::move(on_idle));
  state_->notify_idle_later();
}

}  // namespace holdfast::controller
