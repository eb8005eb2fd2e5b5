#include "reconciler/pool/size.h"

#include <algorithm>
#include <tuple>

#include "reconciler/lost_nodes.h"
#include "reconciler/pool/size_status.h"
#include "reconciler/pool/start_failures.h"

namespace holdfast::reconciler {
namespace {

using Workers = std::vector<const PoolWorker*>;

std::int64_t whole(std::int64_t slots, std::int64_t slots_per_worker) {
  return slots <= 0 ? 0 : (slots + slots_per_worker - 1) / slots_per_worker;
}

std::int64_t size_of(const Workers& workers) { return static_cast<std::int64_t>(workers.size()); }

Workers without(Workers workers, const Workers& these) {
  std::erase_if(workers, [&](const PoolWorker* worker) {
    return std::find(these.begin(), these.end(), worker) != these.end();
  });
  return workers;
}

// What the runs without a place need: workers of their own, and slots.
struct Need {
  std::int64_t alone = 0;
  std::int64_t slots = 0;
};

// How many new workers it takes beside these. An empty worker is for one run that needs it alone,
// or for others, never for both. Which of them such a run takes is open: the one with the most
// slots counts as gone.
std::int64_t lacking(Need need, const Workers& live, const Workers& starting,
                     std::int64_t slots_per_worker) {
  std::vector<std::int64_t> empty;  // the slots of each
  for (const Workers* const workers : {&live, &starting}) {
    for (const PoolWorker* const worker : *workers) {
      if (worker->attempts == 0 && worker->kept) {
        --need.alone;
      } else if (worker->attempts == 0) {
        empty.push_back(worker->pod.slots);
      } else if (!worker->kept) {
        need.slots -= std::max<std::int64_t>(worker->pod.slots - worker->attempts, 0);
      }
    }
  }
  std::sort(empty.begin(), empty.end());
  for (; need.alone > 0 && !empty.empty(); --need.alone) empty.pop_back();
  for (const std::int64_t slots : empty) need.slots -= slots;
  return std::max<std::int64_t>(need.alone, 0) + whole(need.slots, slots_per_worker);
}

// The least loaded first, then the youngest.
bool goes_before(const PoolWorker* a, const PoolWorker* b) {
  return std::tie(a->attempts, b->pod.created, a->pod.uid) <
         std::tie(b->attempts, a->pod.created, b->pod.uid);
}

class Planner {
 public:
  explicit Planner(const PoolState& state)
      : state_(state), failures_(state), seen_(sorted(state)), rolling_(seen_.rolling) {
    std::sort(seen_.live.begin(), seen_.live.end(), goes_before);
    std::sort(seen_.starting.begin(), seen_.starting.end(), goes_before);
    live_ = seen_.live;
    starting_ = seen_.starting;
  }

  PoolPlan plan() {
    if (!state_.deleting) {
      keep_marks();
      remove_what_is_over();
      // A newer version made the pool as it is, and only that one knows what it shall be.
      if (state_.spec.unknown.empty()) {
        const bool may_ask = state_.asking > Duration::zero();
        if (may_ask) wake(state_.asking);
        hold_maximum();
        if (!may_ask) shrink();
        roll_out();
        if (!may_ask) forgo();
        grow();
      }
    }
    bound(plan_.drain);
    name_gone();
    const bool at_rest = seen_.starting.empty() && plan_.create == 0;
    plan_.status = next_status(state_, seen_, failures_, failures_.record(seen_.live, at_rest));
    return std::move(plan_);
  }

 private:
  bool is_old(const PoolWorker& worker) const { return has_older_template(state_, worker); }

  void keep_marks() {
    for (const PoolWorker* const worker : seen_.live) {
      if (!worker->marking) continue;
      drain(*worker);
      if (is_old(*worker)) ++rolling_;
    }
  }

  void remove_what_is_over() {
    for (const PoolWorker& worker : state_.workers) {
      if (worker.pod.deleting) {
        // Its agent may not have said yet that it drains.
        if (worker.state == WorkerState::kLive && !worker.pod.ended) drain(worker);
        continue;
      }
      if (failures_.is_excused(worker)) {
        wake(worker.began() + kShortLife - state_.now);
        continue;
      }
      const bool is_failing = failures_.is_failing(worker);
      // What a worker said last counts only once it is cut off.
      const bool awaits_cut_off = worker.pod.ended && worker.state != WorkerState::kCutOff;
      if (awaits_cut_off || (is_failing && !failures_.may_replace(worker))) continue;
      const bool is_over = is_failing || worker.state == WorkerState::kCutOff ||
                           (worker.state == WorkerState::kDraining && worker.attempts == 0) ||
                           (worker.state == WorkerState::kStarting && is_old(worker) &&
                            (worker.attempts == 0 || is_late(worker)));
      if (is_over) remove(worker);
    }
  }

  void hold_maximum() {
    std::int64_t excess = size_of(live_) + size_of(starting_) - state_.spec.max_workers;
    // One with attempts serves, and the watch of its Lease is late: it is drained once that shows it.
    for (; excess > 0 && !starting_.empty() && starting_.front()->attempts == 0; --excess) {
      remove(*starting_.front());
    }
    for (; excess > 0 && !live_.empty(); --excess) drain(*live_.front());
  }

  // With an attempt and not live: the watch of its Lease is late, or it hangs.
  bool is_late(const PoolWorker& worker) const {
    return worker.is_late(state_.spec.start_deadline, state_.now);
  }

  // Of what waits, and of what these workers run.
  Need need_with(const Workers& these) const {
    const std::int64_t alone = std::min(state_.waiting_alone, state_.waiting);
    Need need{alone, state_.waiting - alone};
    for (const PoolWorker* const worker : these) need.slots += worker->attempts;
    return need;
  }

  // The other live workers have room for what runs and waits.
  bool is_spare(const PoolWorker& worker) const {
    const Workers one = {&worker};
    return size_of(live_) > state_.spec.min_workers &&
           lacking(need_with(one), without(live_, one), {}, state_.spec.slots) == 0;
  }

  // How many workers the pool should have beside the live ones and these. The rollout needs them
  // before the next old ones may go.
  std::int64_t wanted_beside(const Workers& starting) const {
    const Workers stay = without(live_, next_old_);
    return std::max(state_.spec.min_workers - size_of(stay) - size_of(starting),
                    lacking(need_with(next_old_), stay, starting, state_.spec.slots));
  }

  void shrink() {
    Workers idle;
    for (const PoolWorker* const worker : live_) {
      if (worker->attempts > 0) continue;
      if (worker->idle_for >= state_.spec.idle) {
        idle.push_back(worker);
      } else if (size_of(live_) > state_.spec.min_workers) {
        wake(state_.spec.idle - worker->idle_for);
      }
    }
    std::stable_partition(idle.begin(), idle.end(),
                          [&](const PoolWorker* worker) { return is_old(*worker); });
    for (const PoolWorker* const worker : idle) {
      if (is_spare(*worker)) drain(*worker);
    }
  }

  void roll_out() {
    Workers old;
    std::copy_if(live_.begin(), live_.end(), std::back_inserter(old),
                 [&](const PoolWorker* worker) { return is_old(*worker); });
    const std::int64_t quarter = std::max<std::int64_t>((size_of(live_) + rolling_) / 4, 1);
    auto next = old.begin();
    for (; next != old.end() && rolling_ < quarter; ++next) {
      // Where maxWorkers leaves no room for a new one first, some may be missing.
      const bool is_full =
          size_of(live_) + size_of(starting_) + rolling_ >= state_.spec.max_workers;
      const bool may_miss = is_full && size_of(starting_) + rolling_ < quarter;
      if (!is_spare(**next) && !may_miss) break;
      drain(**next);
      ++rolling_;
    }
    const std::int64_t more = std::min<std::int64_t>(quarter - rolling_, old.end() - next);
    if (more > 0) next_old_.assign(next, next + more);
  }

  // Workers without a node that nobody needs. They have no deadline.
  void forgo() {
    const Workers all = starting_;
    for (const PoolWorker* const worker : all) {
      if (worker->bound || worker->attempts > 0 || failures_.is_failing(*worker)) continue;
      if (wanted_beside(without(starting_, {worker})) > 0) continue;
      const Duration left = worker->pod.created + state_.spec.idle - state_.now;
      if (left > Duration::zero()) {
        wake(left);
      } else {
        remove(*worker);
      }
    }
  }

  // May still serve while its successor comes. So it goes before that one is made.
  bool goes_first(const PoolWorker& worker) const {
    const bool may_start = worker.state == WorkerState::kStarting && !worker.pod.cannot_start;
    return failures_.is_failing(worker) || (may_start && is_old(worker));
  }

  // Pods that must go first, and cannot be deleted now or not with this plan. What cannot be deleted
  // is tried last.
  std::int64_t undeletable() {
    const auto place = [&](const PoolWorker* worker) {
      return std::make_pair(worker->stays, !goes_first(*worker));
    };
    std::stable_sort(gone_.begin(), gone_.end(),
                     [&](const PoolWorker* a, const PoolWorker* b) { return place(a) < place(b); });
    std::int64_t there = 0;
    for (std::size_t i = 0; i < gone_.size(); ++i) {
      const PoolWorker& worker = *gone_[i];
      const bool goes_now = i < static_cast<std::size_t>(kPlanLimit) && !worker.stays;
      if (goes_first(worker) && !worker.pod.ended && !goes_now) ++there;
    }
    return there;
  }

  void grow() {
    const std::int64_t there = size_of(live_) + size_of(starting_);
    const std::int64_t wanted = wanted_beside(starting_);
    // Their marks are not written yet.
    const auto draining = static_cast<std::int64_t>(plan_.drain.size());
    const std::int64_t create =
        std::min(wanted, state_.spec.max_workers - there - draining - undeletable());
    for (const PoolWorker* const worker : starting_) {
      if (!worker->bound) continue;
      const Duration left = *worker->bound + state_.spec.start_deadline - state_.now;
      if (left > Duration::zero()) wake(left);
    }
    const std::optional<Duration> pause = failures_.pause();
    if (pause && (create > 0 || !failures_.failing().empty())) wake(*pause);
    if (create <= 0 || pause) return;
    plan_.create = std::min(create, kPlanLimit);
    avoid_silent_nodes();
    if (create > kPlanLimit) wake(kNextPlan);
  }

  void avoid_silent_nodes() {
    if (state_.refusal) return;  // of a policy, maybe, that forbids it
    for (const PoolWorker& worker : state_.workers) {
      const std::string& node = worker.pod.node;
      if (worker.state != WorkerState::kCutOff || worker.pod.ended || node.empty()) continue;
      // On a silent node it stays deleted until the node is back. Kubernetes has marked the node.
      const auto& deleted = worker.pod.deleted;
      if (deleted && state_.now - *deleted >= kLostNodeAvoided) continue;
      if (plan_.avoid.size() == kLostNodesLimit) return;
      const auto& all = plan_.avoid;
      if (std::find(all.begin(), all.end(), node) == all.end()) plan_.avoid.push_back(node);
    }
  }

  void drain(const PoolWorker& worker) {
    plan_.drain.push_back(worker.pod.uid);
    std::erase(live_, &worker);
  }
  void remove(const PoolWorker& worker) {
    gone_.push_back(&worker);
    std::erase(starting_, &worker);
  }
  void name_gone() {
    for (const PoolWorker* const worker : gone_) plan_.remove.push_back(worker->pod.uid);
    bound(plan_.remove);
    gone_.resize(plan_.remove.size());
    for (const PoolWorker* const worker : gone_) {
      if (goes_first(*worker)) plan_.replace.push_back(worker->pod.uid);
    }
  }
  void wake(Duration after) {
    plan_.wake_after = std::min(plan_.wake_after.value_or(after), after);
  }
  void bound(std::vector<std::string>& uids) {
    if (uids.size() <= kPlanLimit) return;
    uids.resize(kPlanLimit);
    wake(kNextPlan);
  }

  const PoolState& state_;
  const StartFailures failures_;
  PoolSeen seen_;
  // What is left of `seen_` after this plan.
  Workers live_;
  Workers starting_;
  std::int64_t rolling_ = 0;  // workers of an older template that drain
  Workers gone_;              // whose pods are to be deleted
  Workers next_old_;          // live ones that go next, once new workers make up for them
  PoolPlan plan_;
};

}  // namespace

PoolPlan plan_pool(const PoolState& state) { return Planner(state).plan(); }

}  // namespace holdfast::reconciler
