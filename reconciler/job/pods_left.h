// The pods of a job, or of a stage, that ends: it waits until they have ended. Internal to
// reconciler/.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "reconciler/job/plan.h"

namespace holdfast::reconciler {

// The pods of the job that still run.
struct PodsLeft {
  const PodView* slowest = nullptr;
  // Until it is given up. None: it is not, because no request to delete it has succeeded.
  std::optional<Duration> time = Duration::zero();
  const DeletionTrouble* trouble = nullptr;  // of that pod

  bool given_up() const { return time && *time <= Duration::zero(); }
};
// None: none runs. Looks again when a node may be given up.
std::optional<PodsLeft> pods_left(const Context& context, Plan& plan);
// Those that keep the end from being recorded with the phase. A lost attempt was given up, so no
// end waits for its pod. `lost`: the attempts that this decision loses.
std::optional<PodsLeft> pods_to_await(const Context& context, Plan& plan,
                                      std::unordered_set<std::int64_t> lost = {});

// Before its end a job, or a stage, waits for pods that run, and then for pods that may still be
// created. While pods run, `waiting` gets these `words`. True: it waits, and `plan` says so.
bool wait_for_pods(const Context& context, const std::optional<PodsLeft>& left, Waiting words,
                   Plan& plan);
// The attempts whose pods have to be looked for before the job, or its stage, is over.
std::vector<std::int64_t> creations_to_look_at(const JobView& view);

}  // namespace holdfast::reconciler
