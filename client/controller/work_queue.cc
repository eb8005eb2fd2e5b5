#include "client/controller/work_queue.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <list>
#include <unordered_map>
#include <utility>

#include "client/controller/fair_share.h"
#include "client/kube/object.h"

namespace holdfast::controller {
namespace {

// After this wait a key takes turns with keys of higher priority, so that an endless stream of them
// cannot starve it.
constexpr Duration kPatience = std::chrono::seconds(5);

// 5 ms * 2^40 is past every cap.
constexpr int kMaxExponent = 40;

// A tenant's bucket always allows this many failures without a delay, for any number of failing
// tenants.
constexpr double kLeastBurst = 10;
constexpr Duration kSweepInterval = std::chrono::seconds(1);

using Keys = std::list<std::string>;

// The ready keys of one priority, by tenant; the tenants take turns.
class Level {
 public:
  Keys::iterator add(const std::string& key) {
    const std::string tenant = kube::namespace_of(key);
    const auto [found, added] = of_.try_emplace(tenant);
    if (added) turns_.push_back(tenant);
    ++size_;
    return found->second.insert(found->second.end(), key);
  }
  void remove(const std::string& key, Keys::iterator position) {
    const std::string tenant = kube::namespace_of(key);
    Keys& keys = of_.at(tenant);
    keys.erase(position);
    --size_;
    if (!keys.empty()) return;
    of_.erase(tenant);
    turns_.remove(tenant);
  }
  // Null: no key of an admitted tenant.
  const std::string* next(const WorkQueue::Admits& admits) const {
    for (const std::string& tenant : turns_) {
      if (!admits || admits(tenant)) return &of_.at(tenant).front();
    }
    return nullptr;
  }
  // Takes the key that next() showed; its tenant's next turn comes after the others'.
  std::string take(const std::string* next) {
    std::string key = *next;
    const std::string tenant = kube::namespace_of(key);
    turns_.remove(tenant);
    Keys& keys = of_.at(tenant);
    keys.pop_front();
    --size_;
    if (keys.empty()) {
      of_.erase(tenant);
    } else {
      turns_.push_back(tenant);
    }
    return key;
  }
  void clear() {
    of_.clear();
    turns_.clear();
    size_ = 0;
  }
  std::size_t size() const { return size_; }

 private:
  std::unordered_map<std::string, Keys> of_;
  std::list<std::string> turns_;
  std::size_t size_ = 0;
};

}  // namespace

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  struct Item {
    bool dirty = false;  // must be handed out
    bool processing = false;
    Priority priority = Priority::kLow;  // if dirty
    Keys::iterator position;             // in its level; only if dirty and not processing
    SteadyTime dirty_since{};
    SteadyTime taken_at{};
    TimerId timer = 0;  // 0: no delay is pending
    SteadyTime due{};
    Priority due_priority = Priority::kLow;
    bool idle() const { return !dirty && !processing && timer == 0; }
  };
  using Items = std::unordered_map<std::string, Item>;

  State(Loop& event_loop, Config configured, std::function<void()> ready, Metrics hooks)
      : loop(event_loop),
        config(configured),
        on_ready(std::move(ready)),
        metrics(std::move(hooks)) {}

  Level& level(Priority priority) { return levels[static_cast<std::size_t>(priority)]; }
  std::size_t depth() const {
    std::size_t count = 0;
    for (const Level& one : levels) count += one.size();
    return count;
  }
  void add(const std::string& key, Priority priority);
  void add_after(const std::string& key, Duration delay, Priority priority);
  void make_ready(const std::string& key, Item& item);
  void post_ready();
  Duration bucket_delay(const std::string& tenant);
  void sweep_buckets(double rate, double burst);
  Level* next_level(const Admits& admits, const std::string** key);
  void drop_timer(Item& item) { loop.cancel(std::exchange(item.timer, 0)); }

  Loop& loop;
  const Config config;
  const std::function<void()> on_ready;
  const Metrics metrics;

  Items items;
  std::array<Level, kPriorities> levels;
  std::unordered_map<std::string, int> failures;
  std::size_t processing = 0;
  bool patient_had_turn = false;
  bool ready_posted = false;  // on_ready is posted
  bool stopped = false;

  // The overall bucket, in equal parts for the tenants that have failed lately; below zero are the
  // failures that wait for their tokens.
  struct Bucket {
    double tokens = 0;
    SteadyTime filled{};
    double at(SteadyTime now, double rate) const {
      return tokens + to_seconds(now - filled) * rate;
    }
  };
  std::unordered_map<std::string, Bucket> buckets;
  SteadyTime swept_at{};
};

void WorkQueue::State::post_ready() {
  if (std::exchange(ready_posted, true)) return;
  loop.post([weak = weak_from_this()] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    state->ready_posted = false;
    if (state->on_ready && state->depth() > 0) state->on_ready();
  });
}

void WorkQueue::State::make_ready(const std::string& key, Item& item) {
  item.position = level(item.priority).add(key);
  post_ready();
}

void WorkQueue::State::add(const std::string& key, Priority priority) {
  if (stopped) return;
  Item& item = items[key];
  if (item.dirty) {
    if (item.priority <= priority) return;
    if (!item.processing) level(item.priority).remove(key, item.position);
    item.priority = priority;
    if (!item.processing) make_ready(key, item);
    return;
  }
  item.dirty = true;
  item.priority = priority;
  item.dirty_since = loop.now();
  if (metrics.on_add) metrics.on_add();
  if (!item.processing) make_ready(key, item);
}

void WorkQueue::State::add_after(const std::string& key, Duration delay, Priority priority) {
  if (stopped) return;
  if (delay <= Duration::zero()) return add(key, priority);
  const SteadyTime due = loop.now() + delay;
  Item& item = items[key];
  item.due_priority = item.timer == 0 ? priority : std::min(item.due_priority, priority);
  if (item.timer != 0) {
    if (item.due <= due) return;
    drop_timer(item);
  }
  item.due = due;
  item.timer = loop.call_at(due, [weak = weak_from_this(), key] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    Item& late = state->items.at(key);
    late.timer = 0;
    state->add(key, late.due_priority);
  });
}

Duration WorkQueue::State::bucket_delay(const std::string& tenant) {
  const SteadyTime now = loop.now();
  const auto [found, added] = buckets.try_emplace(tenant);
  const auto parts = static_cast<double>(buckets.size());
  const double rate = config.failures_per_second / parts;
  const double burst = std::max(config.failure_burst / parts, kLeastBurst);
  Bucket& bucket = found->second;
  bucket.tokens = (added ? burst : std::min(burst, bucket.at(now, rate))) - 1;
  bucket.filled = now;
  const double missing = std::max(0.0, -bucket.tokens);
  sweep_buckets(rate, burst);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(missing / rate));
}

// Those that are full again.
void WorkQueue::State::sweep_buckets(double rate, double burst) {
  const SteadyTime now = loop.now();
  if (now - swept_at < kSweepInterval) return;
  swept_at = now;
  std::erase_if(buckets, [&](const auto& one) { return one.second.at(now, rate) >= burst; });
}

// The first level with a key. In turns with it: the later one that has waited longest, if too long.
Level* WorkQueue::State::next_level(const Admits& admits, const std::string** key) {
  Level* first = nullptr;
  Level* patient = nullptr;
  const std::string* first_key = nullptr;
  SteadyTime longest = loop.now() - kPatience;
  for (Level& level : levels) {
    const std::string* const next = level.next(admits);
    if (next == nullptr) continue;
    if (first == nullptr) {
      first = &level;
      first_key = next;
    } else if (items.at(*next).dirty_since <= longest) {
      patient = &level;
      longest = items.at(*next).dirty_since;
      *key = next;
    }
  }
  if (patient != nullptr && !std::exchange(patient_had_turn, true)) return patient;
  patient_had_turn = false;
  *key = first_key;
  return first;
}

WorkQueue::WorkQueue(Loop& loop, Config config, std::function<void()> on_ready, Metrics metrics)
    : state_(std::make_shared<State>(loop, config, std::move(on_ready), std::move(metrics))) {}

WorkQueue::~WorkQueue() { shut_down(); }

void WorkQueue::add(const std::string& key, Priority priority) { state_->add(key, priority); }

void WorkQueue::add_after(const std::string& key, Duration delay, Priority priority) {
  state_->add_after(key, delay, priority);
}

void WorkQueue::add_rate_limited(const std::string& key, Duration at_least, Priority priority) {
  if (state_->stopped) return;
  if (state_->metrics.on_retry) state_->metrics.on_retry();
  const int failures = std::min(state_->failures[key]++, kMaxExponent);
  Duration delay = state_->config.max_delay;
  // Shifting first would overflow long before the cap.
  if (state_->config.base_delay <= state_->config.max_delay / (std::int64_t{1} << failures)) {
    delay = state_->config.base_delay * (std::int64_t{1} << failures);
  }
  state_->add_after(key, std::max({delay, state_->bucket_delay(kube::namespace_of(key)), at_least}),
                    priority);
}

void WorkQueue::forget(const std::string& key) { state_->failures.erase(key); }

std::optional<std::string> WorkQueue::take(const Admits& admits) {
  State& state = *state_;
  if (state.stopped) return std::nullopt;
  const std::string* next = nullptr;
  Level* const level = state.next_level(admits, &next);
  if (level == nullptr) return std::nullopt;
  std::string key = level->take(next);
  State::Item& item = state.items.at(key);
  item.dirty = false;
  item.processing = true;
  item.taken_at = state.loop.now();
  ++state.processing;
  if (state.metrics.on_take) state.metrics.on_take(item.taken_at - item.dirty_since);
  return key;
}

void WorkQueue::done(const std::string& key) {
  State& state = *state_;
  const auto found = state.items.find(key);
  assert(found != state.items.end() && found->second.processing);
  State::Item& item = found->second;
  item.processing = false;
  --state.processing;
  if (state.metrics.on_done) state.metrics.on_done(state.loop.now() - item.taken_at);
  if (item.dirty && !state.stopped) {
    state.make_ready(key, item);
  } else if (item.idle()) {
    state.items.erase(found);
  }
}

std::size_t WorkQueue::depth() const { return state_->depth(); }

std::size_t WorkQueue::processing() const { return state_->processing; }

Duration WorkQueue::unfinished_work() const {
  Duration total = Duration::zero();
  for (const auto& [key, item] : state_->items) {
    if (item.processing) total += state_->loop.now() - item.taken_at;
  }
  return total;
}

Duration WorkQueue::longest_running() const {
  Duration longest = Duration::zero();
  for (const auto& [key, item] : state_->items) {
    if (item.processing) longest = std::max(longest, state_->loop.now() - item.taken_at);
  }
  return longest;
}

void WorkQueue::shut_down() {
  State& state = *state_;
  state.stopped = true;
  for (Level& level : state.levels) level.clear();
  for (auto it = state.items.begin(); it != state.items.end();) {
    State::Item& item = it->second;
    state.drop_timer(item);
    item.dirty = false;
    it = item.idle() ? state.items.erase(it) : std::next(it);
  }
}

}  // namespace holdfast::controller
