#include "operator/controller/queue.h"

#include <algorithm>
#include <cassert>
#include <list>
#include <unordered_map>
#include <utility>

namespace holdfast::controller {
namespace {

// A low key that has waited so long takes turns with the fresh ones: behind them, but not starved
// by a stream of them that never ends.
constexpr Duration kLowPatience = std::chrono::seconds(5);

// 5 ms * 2^40 is past every cap.
constexpr int kMaxExponent = 40;

}  // namespace

struct Queue::State : std::enable_shared_from_this<Queue::State> {
  struct Item {
    bool dirty = false;  // to be handed out
    bool processing = false;
    Priority priority = Priority::kLow;      // of a dirty one
    std::list<std::string>::iterator place;  // in its list; of one that is dirty and not processing
    SteadyTime dirty_since{};
    SteadyTime taken_at{};
    TimerId timer = 0;  // 0: no delay is pending
    SteadyTime due{};
    bool idle() const { return !dirty && !processing && timer == 0; }
  };
  using Items = std::unordered_map<std::string, Item>;

  State(Loop& event_loop, Config configured, std::function<void()> ready, Metrics hooks)
      : loop(event_loop),
        config(configured),
        on_ready(std::move(ready)),
        metrics(std::move(hooks)),
        tokens(configured.failure_burst),
        tokens_at(event_loop.now()) {}

  std::list<std::string>& list_of(Priority priority) {
    return priority == Priority::kFresh ? fresh : low;
  }
  void add(const std::string& key, Priority priority);
  void add_after(const std::string& key, Duration delay);
  void make_ready(const std::string& key, Item& item);
  void tell_ready();
  Duration bucket_delay();
  std::list<std::string>* next_list();
  void drop_timer(Item& item) { loop.cancel(std::exchange(item.timer, 0)); }

  Loop& loop;
  const Config config;
  const std::function<void()> on_ready;
  const Metrics metrics;

  Items items;
  std::list<std::string> fresh, low;
  std::unordered_map<std::string, int> failures;
  std::size_t processing = 0;
  bool low_had_turn = false;
  bool told = false;  // on_ready is posted
  bool accepting = true;
  bool handing_out = true;

  // The overall bucket; below zero are the failures that wait for their tokens.
  double tokens;
  SteadyTime tokens_at;
};

void Queue::State::tell_ready() {
  if (std::exchange(told, true)) return;
  loop.post([weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->told = false;
    if (state->on_ready && state->fresh.size() + state->low.size() > 0) state->on_ready();
  });
}

void Queue::State::make_ready(const std::string& key, Item& item) {
  std::list<std::string>& list = list_of(item.priority);
  item.place = list.insert(list.end(), key);
  tell_ready();
}

void Queue::State::add(const std::string& key, Priority priority) {
  if (!accepting) return;
  Item& item = items[key];
  if (item.dirty) {
    if (item.priority == Priority::kFresh || priority == Priority::kLow) return;
    item.priority = priority;
    if (!item.processing) fresh.splice(fresh.end(), low, item.place);
    return;
  }
  item.dirty = true;
  item.priority = priority;
  item.dirty_since = loop.now();
  if (metrics.on_add) metrics.on_add();
  if (!item.processing) make_ready(key, item);
}

void Queue::State::add_after(const std::string& key, Duration delay) {
  if (!accepting) return;
  if (delay <= Duration::zero()) return add(key, Priority::kFresh);
  const SteadyTime due = loop.now() + delay;
  Item& item = items[key];
  if (item.timer != 0) {
    if (item.due <= due) return;
    drop_timer(item);
  }
  item.due = due;
  item.timer = loop.call_at(due, [weak = weak_from_this(), key] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->items.at(key).timer = 0;
    state->add(key, Priority::kFresh);
  });
}

Duration Queue::State::bucket_delay() {
  const SteadyTime now = loop.now();
  tokens = std::min(config.failure_burst,
                    tokens + to_seconds(now - tokens_at) * config.failures_per_second);
  tokens_at = now;
  tokens -= 1;
  if (tokens >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(-tokens / config.failures_per_second));
}

std::list<std::string>* Queue::State::next_list() {
  if (fresh.empty()) return low.empty() ? nullptr : &low;
  if (low.empty()) return &fresh;
  const bool patient = loop.now() - items.at(low.front()).dirty_since < kLowPatience;
  return patient || low_had_turn ? &fresh : &low;
}

Queue::Queue(Loop& loop, Config config, std::function<void()> on_ready, Metrics metrics)
    : state_(std::make_shared<State>(loop, config, std::move(on_ready), std::move(metrics))) {}

Queue::~Queue() { shut_down(/*drain=*/false); }

void Queue::add(const std::string& key, Priority priority) { state_->add(key, priority); }

void Queue::add_after(const std::string& key, Duration delay) { state_->add_after(key, delay); }

void Queue::add_rate_limited(const std::string& key) {
  if (!state_->accepting) return;
  if (state_->metrics.on_retry) state_->metrics.on_retry();
  const int failures = std::min(state_->failures[key]++, kMaxExponent);
  Duration delay = state_->config.max_delay;
  // Shifting first would overflow long before the cap.
  if (state_->config.base_delay <= state_->config.max_delay / (std::int64_t{1} << failures)) {
    delay = state_->config.base_delay * (std::int64_t{1} << failures);
  }
  state_->add_after(key, std::max(delay, state_->bucket_delay()));
}

void Queue::forget(const std::string& key) { state_->failures.erase(key); }

std::optional<std::string> Queue::take() {
  State& state = *state_;
  if (!state.handing_out) return std::nullopt;
  std::list<std::string>* const list = state.next_list();
  if (list == nullptr) return std::nullopt;
  state.low_had_turn = list == &state.low;
  std::string key = std::move(list->front());
  list->pop_front();
  State::Item& item = state.items.at(key);
  item.dirty = false;
  item.processing = true;
  item.taken_at = state.loop.now();
  ++state.processing;
  if (state.metrics.on_take) state.metrics.on_take(item.taken_at - item.dirty_since);
  return key;
}

void Queue::done(const std::string& key) {
  State& state = *state_;
  const auto found = state.items.find(key);
  assert(found != state.items.end() && found->second.processing);
  State::Item& item = found->second;
  item.processing = false;
  --state.processing;
  if (state.metrics.on_done) state.metrics.on_done(state.loop.now() - item.taken_at);
  if (item.dirty && state.handing_out) {
    state.make_ready(key, item);
  } else if (item.idle()) {
    state.items.erase(found);
  }
}

std::size_t Queue::depth() const { return state_->fresh.size() + state_->low.size(); }

std::size_t Queue::processing() const { return state_->processing; }

Duration Queue::unfinished_work() const {
  Duration total = Duration::zero();
  for (const auto& [key, item] : state_->items) {
    if (item.processing) total += state_->loop.now() - item.taken_at;
  }
  return total;
}

Duration Queue::longest_running() const {
  Duration longest = Duration::zero();
  for (const auto& [key, item] : state_->items) {
    if (item.processing) longest = std::max(longest, state_->loop.now() - item.taken_at);
  }
  return longest;
}

void Queue::shut_down(bool drain) {
  State& state = *state_;
  state.accepting = false;
  if (!drain) {
    state.handing_out = false;
    state.fresh.clear();
    state.low.clear();
  }
  for (auto it = state.items.begin(); it != state.items.end();) {
    State::Item& item = it->second;
    state.drop_timer(item);
    if (!drain) item.dirty = false;
    it = item.idle() ? state.items.erase(it) : std::next(it);
  }
}

}  // namespace holdfast::controller
