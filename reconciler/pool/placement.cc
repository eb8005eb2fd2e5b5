#include "reconciler/pool/placement.h"

#include <algorithm>
#include <tuple>

#include "reconciler/names.h"

namespace holdfast::reconciler {

void SlotPlacement::add(const std::string& uid, int slots, int used) {
  workers_.push_back({uid, hash64(uid), slots, used});
  used_ += used;
  free_ += std::max(slots - used, 0);
}

std::optional<std::string> SlotPlacement::place(const std::string& key) {
  const auto count = static_cast<std::int64_t>(workers_.size());
  if (count == 0) return std::nullopt;
  // 1.25 times the mean with this attempt, rounded up.
  const std::int64_t bound = (5 * (used_ + 1) + 4 * count - 1) / (4 * count);
  const std::uint64_t hash = hash64(key);
  Worker* best = nullptr;
  std::tuple<bool, std::uint64_t> best_rank;
  for (Worker& worker : workers_) {
    if (worker.used >= worker.slots) continue;
    // Workers may have different numbers of slots, so only full ones may be below the bound.
    const std::tuple rank(worker.used < bound, mixed(hash ^ worker.hash));
    if (best && (rank < best_rank || (rank == best_rank && best->uid < worker.uid))) continue;
    best = &worker;
    best_rank = rank;
  }
  if (!best) return std::nullopt;
  ++best->used;
  ++used_;
  --free_;
  return best->uid;
}

}  // namespace holdfast::reconciler
