#include "operator/pools/pool_slots.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/invariant.h"

namespace holdfast::pools {
namespace {

// A tenth, rounded up.
std::int64_t most_kept(std::int64_t workers) { return (workers + 9) / 10; }

}  // namespace

void PoolSlots::put(const reconciler::PoolView::Worker& offer, std::int64_t slots, bool takes,
                    const Work& work, const WorkerReport& report) {
  WorkerSlots& worker = workers_[offer.uid];
  sum(worker, -1);
  worker.set_leases(offer, slots, work, report);
  worker.recount();
  worker.takes = takes;
  sum(worker, 1);
}

void PoolSlots::forget_if_empty(const std::string& uid) {
  const auto found = workers_.find(uid);
  if (found != workers_.end() && !found->second.there && !found->second.is_named()) {
    workers_.erase(found);
  }
}

void PoolSlots::settle(const std::string& uid) {
  WorkerSlots& worker = workers_[uid];
  sum(worker, -1);
  worker.recount();
  sum(worker, 1);
  forget_if_empty(uid);
}

void PoolSlots::withdraw_promise(const std::string& uid, const AttemptId& id) {
  const auto found = workers_.find(uid);
  if (found == workers_.end()) return;
  std::erase_if(found->second.promised, [&](const auto& one) { return one.id == id; });
  settle(uid);
}

void PoolSlots::sum(const WorkerSlots& worker, int sign) {
  if (!worker.takes) return;
  busy_ += sign * worker.used;
  slots_ += sign * worker.slots;
  if (!worker.takes_any()) return;
  free_ += sign * std::max<std::int64_t>(worker.slots - worker.used, 0);
}

// The emptiest are kept, and stay kept while such runs wait. A worker that has such a run counts,
// too: together they are a tenth at most.
void PoolSlots::keep_free(std::int64_t wanted_alone) {
  if (wanted_alone == 0 && kept_ == 0) return;
  std::int64_t workers = 0;
  std::int64_t taken = 0;
  std::vector<std::pair<std::tuple<bool, std::int64_t, std::string>, WorkerSlots*>> others;
  for (auto& [uid, worker] : workers_) {
    workers += worker.takes ? 1 : 0;
    taken += worker.takes && worker.alone ? 1 : 0;
    const bool may_be = worker.takes && !worker.alone;
    if (may_be) {
      others.push_back({{!worker.kept, worker.used, uid}, &worker});
    } else {
      worker.kept = false;
    }
  }
  std::sort(others.begin(), others.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  kept_ = std::clamp<std::int64_t>(wanted_alone, 0,
                                   std::max<std::int64_t>(most_kept(workers) - taken, 0));
  kept_ = std::min(kept_, static_cast<std::int64_t>(others.size()));
  for (std::int64_t n = 0; n < static_cast<std::int64_t>(others.size()); ++n) {
    WorkerSlots& worker = *others[static_cast<std::size_t>(n)].second;
    if (worker.kept == (n < kept_)) continue;
    sum(worker, -1);
    worker.kept = n < kept_;
    sum(worker, 1);
  }
}

std::int64_t PoolSlots::empty_workers(bool others_wait) const {
  return std::count_if(workers_.begin(), workers_.end(), [&](const auto& one) {
    return one.second.takes_alone() && (one.second.kept || !others_wait);
  });
}

std::vector<reconciler::PoolView::Worker> PoolSlots::offer_empty(std::int64_t most,
                                                                 bool others_wait) const {
  std::vector<reconciler::PoolView::Worker> offers;
  for (const bool kept : {true, false}) {
    for (const auto& [uid, worker] : workers_) {
      if (static_cast<std::int64_t>(offers.size()) >= most) return offers;
      const bool may_take = worker.takes_alone() && worker.kept == kept && (kept || !others_wait);
      if (may_take) offers.push_back(worker.offer);
    }
  }
  return offers;
}

const WorkerSlots& PoolSlots::of(const std::string& uid) const {
  static const WorkerSlots kNothing;
  const auto found = workers_.find(uid);
  return found == workers_.end() ? kNothing : found->second;
}

std::vector<std::string> PoolSlots::missing() const {
  std::vector<std::string> uids;
  for (const auto& [uid, worker] : workers_) {
    if (worker.is_missing()) uids.push_back(uid);
  }
  return uids;
}

void PoolSlots::check() const {
  PoolSlots again;
  for (const auto& [uid, worker] : workers_) {
    invariant(worker.is_counted(), "the used slots of a worker are those of its attempts");
    again.sum(worker, 1);
    again.kept_ += worker.kept ? 1 : 0;
  }
  invariant(again.free_ == free_ && again.busy_ == busy_ && again.slots_ == slots_,
            "the slots of a pool are those of its workers");
  invariant(again.kept_ == kept_, "as many workers are kept free as are counted");
}

}  // namespace holdfast::pools
