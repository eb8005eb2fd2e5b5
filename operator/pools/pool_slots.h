// The workers of one pool with their slots. It knows how many are free, and which workers are kept
// free for runs that need one of their own. Loop only.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator/pools/worker_slots.h"

namespace holdfast::pools {

class PoolSlots {
 public:
  // The worker as its Leases show it now. `takes`: it may get new attempts.
  void put(const reconciler::PoolView::Worker& offer, std::int64_t slots, bool takes,
           const Work& work, const WorkerReport& report);
  void forget_if_empty(const std::string& uid);

  // Change what is held on a worker, then settle() it. Nothing may be known of it before.
  WorkerSlots& change(const std::string& uid) { return workers_[uid]; }
  void settle(const std::string& uid);
  void withdraw_promise(const std::string& uid, const AttemptId& id);

  // Decides which workers are kept free, as so many runs wait for one of their own.
  void keep_free(std::int64_t wanted_alone);
  // Workers that such a run may take. Only kept ones, if others wait, too.
  std::int64_t empty_workers(bool others_wait) const;
  std::vector<reconciler::PoolView::Worker> offer_empty(std::int64_t most, bool others_wait) const;

  // Nothing is known of it: it has nothing.
  const WorkerSlots& of(const std::string& uid) const;
  const std::unordered_map<std::string, WorkerSlots>& all() const { return workers_; }
  // The workers that have places on record, but no Leases.
  std::vector<std::string> missing() const;

  // Of the workers that take attempts. Slots that any run may take: those of kept workers are not
  // among them.
  std::int64_t free() const { return free_; }
  std::int64_t busy() const { return busy_; }
  std::int64_t slots() const { return slots_; }

  // Throws if the sums are not those of the workers (core/invariant.h).
  void check() const;

 private:
  void sum(const WorkerSlots& worker, int sign);

  std::unordered_map<std::string, WorkerSlots> workers_;  // by the UID of the worker Lease
  std::int64_t kept_ = 0;                                 // workers
  // Sums over the workers that take attempts.
  std::int64_t free_ = 0;
  std::int64_t busy_ = 0;
  std::int64_t slots_ = 0;
};

}  // namespace holdfast::pools
