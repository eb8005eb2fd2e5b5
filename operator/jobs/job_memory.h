// One replica's memory of one job between reconciles. A crash may lose all of it at any moment.
// Correctness depends only on `status`; the memory saves time and writes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/time.h"
#include "operator/membership/ownership.h"
#include "reconciler/decide.h"
#include "reconciler/sightings.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct JobMemory {
  std::string uid;

  // Our own writes: do not reconcile the job before the cache has these versions.
  std::uint64_t job_version = 0;
  std::uint64_t pod_version = 0;
  std::uint64_t lease_version = 0;
  SteadyTime held_since{};

  std::optional<SteadyTime> last_write;

  // The intents that this process has sent for one attempt, whatever the answers. Each try has its
  // own stamp. Any of them may have been applied although its answer was lost.
  std::int64_t intent_attempt = 0;
  std::vector<Time> intent_stamps;
  // The last attempt for which this process created or saw a pod, and that pod's UID. Only the
  // first pod counts: a later pod of the same name is a different one.
  std::int64_t pod_attempt = 0;
  std::string pod_uid;
  // Records the pod. True if it was not known yet.
  bool pod_is_known(std::int64_t attempt, const std::string& known_uid) {
    if (attempt <= pod_attempt) return false;
    pod_attempt = attempt;
    pod_uid = known_uid;
    return true;
  }
  reconciler::Sightings pods;

  // The attempt that existed when we got the shard. The replica that recorded it has stopped
  // acting.
  std::int64_t inherited_attempt = 0;
  // The attempt that was first seen running without a pod, and when.
  std::int64_t bare_attempt = 0;
  SteadyTime bare_since{};

  // A pod's creation that is in progress, or whose refusal is not recorded yet. Until then the
  // shard is not handed over: the next holder would treat the attempt as abandoned.
  struct Creation {
    Ownership::Claim claim;
    std::shared_ptr<void> shard;  // keeps the shard
    bool under_way = true;
    kube::CancellationPtr request = std::make_shared<kube::Cancellation>();
    bool handed_over = false;  // cancelled for a hand-over; the next holder creates the pod again
  };
  std::optional<Creation> creation;
  bool creating() const { return creation && creation->under_way; }

  // The API server's Retry-After, for each kind of write and for live reads: send none before.
  std::array<SteadyTime, std::variant_size_v<reconciler::Write>> writes_not_before{};
  SteadyTime looks_not_before{};

  // The creation of this attempt's pod was refused.
  std::int64_t refused_attempt = 0;
  reconciler::CreationRefusal refusal;
  int refusals = 0;
  int refused_in_a_row = 0;  // in the same way
  SteadyTime refused_at{};
  SteadyTime retry_at{};

  // Since when all deletions of ended attempts' pods have failed.
  std::optional<SteadyTime> stop_failing_since;

  // The last attempt for which this process has, or may have, written the job's Lease.
  std::int64_t lease_attempt = 0;

  // Why the last write of the job's Lease was refused; empty: it was not.
  std::string lease_refusal;
  int lease_refusals = 0;
  SteadyTime lease_retry_at{};

  // The last holder of the job's Lease whose worker this process saw terminate. Its pod may be
  // gone.
  std::string stopped_holder;

  // The current recovery. It ends when the next attempt's pod exists.
  reconciler::OrphanClass orphan_class = reconciler::OrphanClass::kNone;
  SteadyTime trouble_began{};
};

}  // namespace holdfast::controller
