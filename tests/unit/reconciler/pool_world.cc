#include "tests/unit/reconciler/pool_world.h"

#include <algorithm>

namespace holdfast::reconciler::testing {
namespace {

bool serves(const PoolWorker& worker) {
  return !worker.pod.ended && !worker.pod.deleting &&
         (worker.state == WorkerState::kStarting || worker.state == WorkerState::kLive);
}

bool has(const std::vector<std::string>& uids, const std::string& uid) {
  return std::find(uids.begin(), uids.end(), uid) != uids.end();
}

}  // namespace

PoolWorld::PoolWorld(std::uint64_t seed) : random_(seed) {
  started_ = state_.now = kEarliestTime + std::chrono::hours(1000);
  state_.name = "pool";
  state_.hash = "0";
  state_.generation = 1;
  state_.spec.min_workers = random_.below(4);
  state_.spec.max_workers = state_.spec.min_workers + 1 + random_.below(8);
  state_.spec.slots = 1 + random_.below(4);
  state_.spec.idle = seconds(random_.below(120));
}

void PoolWorld::disturb() {
  if (random_.percent(30)) state_.waiting += random_.below(8);
  if (random_.percent(5)) {  // runs that need workers of their own
    ++state_.waiting;
    ++state_.waiting_alone;
  }
  if (random_.percent(3)) good_ = !good_;
  if (random_.percent(3)) {  // a new template, which may have other slots
    state_.hash = std::to_string(++templates_);
    state_.spec.slots = 1 + random_.below(4);
    ++state_.generation;
  }
  if (random_.percent(3)) {
    state_.spec.min_workers = random_.below(5);
    state_.spec.max_workers = std::max<std::int64_t>(state_.spec.min_workers, 1 + random_.below(9));
    ++state_.generation;
  }
  for (auto& [number, pod] : pods_) {
    if (random_.percent(1)) pod.worker.pod.deleting = true;
    if (random_.percent(1)) pod.frozen = true;
    if (random_.percent(1)) {
      pod.worker.pod.ended = true;
      pod.worker.pod.failed = random_.percent(50);
    }
    // A restart forgets how long a worker was idle.
    if (random_.percent(1)) pod.worker.idle_for = Duration::zero();
  }
  if (random_.percent(2)) state_.refusal = PoolState::Refusal{"no quota", state_.now};
}

void PoolWorld::calm_down() {
  lossy_ = false;
  for (auto& [number, pod] : pods_) {
    pod.bound = std::min(pod.bound, state_.now);
    pod.ready = std::min(pod.ready, state_.now + seconds(30));
  }
  if (!good_) {
    good_ = true;
    state_.hash = std::to_string(++templates_);
    ++state_.generation;
  }
}

void PoolWorld::end_all_runs() {
  state_.waiting = state_.waiting_alone = 0;
  endless_ = endless_alone_ = false;
}

void PoolWorld::run_forever(std::int64_t runs) {
  endless_ = true;
  state_.waiting = runs;
  state_.waiting_alone = 0;
}

void PoolWorld::run_alone_forever(std::int64_t runs) {
  endless_alone_ = true;
  state_.waiting = state_.waiting_alone = runs;
}

void PoolWorld::pass(Duration time) {
  state_.now += time;
  for (auto one = pods_.begin(); one != pods_.end();) {
    Pod& pod = one->second;
    PoolWorker& worker = pod.worker;
    if (worker.pod.deleting && pod.gone == Time{})
      pod.gone = state_.now + seconds(random_.below(20));
    // What ran there is placed anew.
    const bool is_lost =
        worker.pod.ended || pod.frozen || (worker.pod.deleting && pod.gone <= state_.now);
    if (is_lost && worker.state != WorkerState::kCutOff) {
      state_.waiting += worker.attempts;
      worker.attempts = 0;
      worker.state = WorkerState::kCutOff;
    }
    if (worker.pod.deleting && pod.gone <= state_.now) {
      one = pods_.erase(one);
      continue;
    }
    if (pod.bound <= state_.now) worker.bound = pod.bound;
    if (worker.state == WorkerState::kStarting && pod.good && pod.ready <= state_.now) {
      worker.state = WorkerState::kLive;
      worker.served = true;
    }
    if (worker.state == WorkerState::kStarting && !pod.good && pod.ready <= state_.now) {
      worker.pod.cannot_start = true;
      worker.pod.trouble = "ImagePullBackOff";
    }
    // The answer to the write that marks it. A frozen API server may take long.
    if (worker.marking && random_.percent(60)) {
      worker.marking = false;
      if (worker.state == WorkerState::kLive && !lost()) worker.state = WorkerState::kDraining;
    }
    const bool never_ends = worker.kept ? endless_alone_ : endless_;
    for (std::int64_t i = worker.attempts; !never_ends && i > 0; --i) {
      if (random_.percent(40)) --worker.attempts;
    }
    worker.kept = worker.kept && worker.attempts > 0;
    const bool is_idle = worker.state == WorkerState::kLive && worker.attempts == 0;
    worker.idle_for = is_idle ? worker.idle_for + time : Duration::zero();
    ++one;
  }
  place();
}

void PoolWorld::place() {
  for (auto& [number, pod] : pods_) {
    PoolWorker& worker = pod.worker;
    const bool takes = worker.state == WorkerState::kLive && !worker.marking;
    if (!takes || worker.pod.deleting || pod.frozen) continue;
    if (worker.attempts == 0 && state_.waiting > 0 && state_.waiting == state_.waiting_alone) {
      worker.kept = true;
      worker.attempts = 1;
      --state_.waiting;
      --state_.waiting_alone;
      worker.idle_for = Duration::zero();
    }
    while (!worker.kept && state_.waiting > state_.waiting_alone &&
           worker.attempts < worker.pod.slots) {
      ++worker.attempts;
      --state_.waiting;
      worker.idle_for = Duration::zero();
    }
  }
}

void PoolWorld::look() {
  state_.workers.clear();
  for (const auto& [number, pod] : pods_) state_.workers.push_back(pod.worker);
}

bool PoolWorld::act() {
  look();
  const PoolPlan plan = plan_pool(state_);
  check(plan);
  apply(plan);
  // Another replica with the same state does it once more.
  if (lossy_ && random_.percent(10)) apply(plan);
  return plan.create > 0 || !plan.drain.empty() || !plan.remove.empty();
}

void PoolWorld::apply(const PoolPlan& plan) {
  if (!lost()) state_.status = plan.status;
  for (auto& [number, pod] : pods_) {
    const std::string& uid = pod.worker.pod.uid;
    if (has(plan.remove, uid) && !lost()) pod.worker.pod.deleting = true;
    const bool may_drain = pod.worker.state == WorkerState::kLive;
    if (!may_drain || !has(plan.drain, uid) || lost()) continue;
    if (random_.percent(50)) {
      pod.worker.marking = true;
    } else {
      pod.worker.state = WorkerState::kDraining;
    }
  }
  // The lowest names that were free when the state was seen.
  const std::size_t target = state_.workers.size() + static_cast<std::size_t>(plan.create);
  for (std::int64_t i = 0; i < plan.create && pods_.size() < target; ++i) {
    if (!lost()) create_one();
  }
}

void PoolWorld::create_one() {
  int number = 1;
  while (pods_.count(number) > 0) ++number;
  Pod pod;
  pod.worker.pod.uid = "uid-" + std::to_string(++pods_made_);
  pod.worker.pod.name = "pool-" + std::to_string(number);
  pod.worker.pod.created = std::chrono::floor<seconds>(state_.now);
  pod.worker.pod.hash = state_.hash;
  pod.worker.pod.slots = state_.spec.slots;
  pod.good = good_;
  // A gate, or a full cluster.
  const bool waits = lossy_ && random_.percent(20);
  pod.bound = state_.now + seconds(waits ? random_.below(3000) : random_.below(3));
  pod.ready = pod.bound + seconds(1 + random_.below(30));
  pods_.emplace(number, pod);
  state_.refusal.reset();
}

std::int64_t PoolWorld::serving() const {
  return std::count_if(state_.workers.begin(), state_.workers.end(), serves);
}

void PoolWorld::violates(const std::string& rule) {
  violations.push_back("after " + human_duration(state_.now - started_) + ": " + rule);
}

void PoolWorld::check(const PoolPlan& plan) {
  std::int64_t serve = 0;
  std::int64_t live = 0;
  bool loses = false;
  bool forgoes = false;  // a worker that waits for a node
  for (const PoolWorker& worker : state_.workers) {
    const bool goes =
        worker.marking || has(plan.remove, worker.pod.uid) || has(plan.drain, worker.pod.uid);
    loses = loses || (goes && !worker.marking && serves(worker) && worker.pod.hash == state_.hash &&
                      worker.state == WorkerState::kLive);
    if (serves(worker) && !goes) {
      ++serve;
      if (worker.state == WorkerState::kLive) ++live;
    }
    if (!has(plan.remove, worker.pod.uid)) continue;
    if (worker.attempts > 0) violates("a pod with an attempt is deleted");
    if (worker.pod.ended && worker.state != WorkerState::kCutOff) {
      violates("a pod is deleted before its last answers count");
    }
    if (worker.state == WorkerState::kLive) violates("a worker is deleted without a mark");
    const bool waits = worker.state == WorkerState::kStarting && !worker.bound && !worker.pod.ended;
    if (waits && worker.pod.hash == state_.hash && serving() <= state_.spec.max_workers) {
      forgoes = true;
      if (worker.pod.created + state_.spec.idle > state_.now) {
        violates("a worker that waits for a node is deleted before its time");
      }
    }
  }
  const std::int64_t max = state_.spec.max_workers;
  if (plan.create > 0 && serve + plan.create > max) violates("more than maxWorkers");
  if (serve > max && plan.drain.size() + plan.remove.size() < kPlanLimit) {
    violates("more than maxWorkers stay");
  }
  if (loses && serving() <= max && live < state_.spec.min_workers) {
    violates("scale-in below minWorkers");
  }
  if (forgoes && (serve < state_.spec.min_workers || plan.create > 0)) {
    violates("a worker that waits for a node is deleted although the pool needs it");
  }
  const bool same = state_.status.observed_generation == state_.generation;
  const auto& next = state_.status.starts.next;
  if (same && next && state_.now < *next && plan.create > 0) violates("the back-off is ignored");
  if (plan.status.starts.next && *plan.status.starts.next > state_.now + kLongestStartDelay) {
    violates("the back-off is too long");
  }
  if (plan.create > kPlanLimit) violates("too many pods at once");
  check_drains(plan);
}

void PoolWorld::check_drains(const PoolPlan& plan) {
  std::int64_t rolling = 0;
  std::int64_t pool = 0;
  bool rolls = false;
  for (const PoolWorker& worker : state_.workers) {
    const bool drains = has(plan.drain, worker.pod.uid) && !worker.marking;
    const bool is_old = worker.pod.hash != state_.hash;
    if (drains && worker.attempts > 0 && !worker.pod.deleting && !is_old &&
        serving() <= state_.spec.max_workers) {
      violates("a busy worker is drained for scale-in");
    }
    rolls = rolls || (drains && is_old && worker.attempts > 0 && !worker.pod.deleting);
    if (worker.pod.ended || worker.state == WorkerState::kCutOff) continue;
    const bool is_rolling =
        is_old && (drains || worker.marking || worker.state == WorkerState::kDraining ||
                   (worker.pod.deleting && worker.attempts > 0));
    if (is_rolling && worker.attempts > 0) ++rolling;
    if (is_rolling || worker.state == WorkerState::kLive) ++pool;
  }
  if (rolls && serving() <= state_.spec.max_workers &&
      rolling > std::max<std::int64_t>(pool / 4, 1)) {
    violates("a rollout drains more than a quarter");
  }
}

}  // namespace holdfast::reconciler::testing
