// What one replica remembers of one job between reconciles. All of it may be lost at any moment
// (that is a crash): correctness rests on `status` alone, this makes it quick and quiet.
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

  // Own writes: the cache must have reached these versions before the job is looked at again.
  std::uint64_t job_version = 0;
  std::uint64_t pod_version = 0;
  std::uint64_t lease_version = 0;
  SteadyTime held_since{};

  std::optional<SteadyTime> last_write;

  // The intents of one attempt that this process has sent, whatever the answers: each try has a
  // stamp of its own, and any of them may be the one that was applied though its answer was lost.
  std::int64_t intent_attempt = 0;
  std::vector<Time> intent_stamps;
  // The last attempt of which a pod was created or seen by this process, and that pod's UID. The
  // first one counts: whatever has its name later is another one.
  std::int64_t pod_attempt = 0;
  std::string pod_uid;
  // Whether that is news.
  bool pod_is_known(std::int64_t attempt, const std::string& known_uid) {
    if (attempt <= pod_attempt) return false;
    pod_attempt = attempt;
    pod_uid = known_uid;
    return true;
  }
  reconciler::Sightings pods;

  // The attempt that stood there when the shard came to us: who recorded it does not act any more.
  std::int64_t inherited_attempt = 0;
  // The attempt that was first seen running without a pod, and when.
  std::int64_t bare_attempt = 0;
  SteadyTime bare_since{};

  // The creation of a pod that is under way, or whose refusal is still to be put on record. Until
  // then the shard is not handed over: the next owner would take the attempt for one left behind.
  struct Creation {
    Ownership::Claim claim;
    std::shared_ptr<void> shard;  // keeps it
    bool under_way = true;
    kube::CancellationPtr request = std::make_shared<kube::Cancellation>();
    bool handed_over = false;  // it was cancelled for that: whoever comes next asks again
  };
  std::optional<Creation> creation;
  bool creating() const { return creation && creation->under_way; }

  // Before these times the API server has asked to be left alone: with each kind of write, and with
  // live looks.
  std::array<SteadyTime, std::variant_size_v<reconciler::Write>> writes_not_before{};
  SteadyTime looks_not_before{};

  // The creation of this attempt's pod was refused.
  std::int64_t refused_attempt = 0;
  reconciler::CreationRefusal refusal;
  int refusals = 0;
  int refused_in_a_row = 0;  // in the same way
  SteadyTime refused_at{};
  SteadyTime retry_at{};

  // Since when pods of ended attempts cannot be told to go: no deletion has succeeded since.
  std::optional<SteadyTime> stop_failing_since;

  // The attempt for which this process has written the job's Lease last, or may have.
  std::int64_t lease_attempt = 0;

  // The last write of the job's Lease was refused; empty: it was not.
  std::string lease_refusal;
  int lease_refusals = 0;
  SteadyTime lease_retry_at{};

  // The last holder of the job's Lease whose worker was seen to have terminated, though its pod may
  // be gone by now.
  std::string stopped_holder;

  // A recovery that is not over until the next attempt's pod exists.
  reconciler::OrphanClass orphan_class = reconciler::OrphanClass::kNone;
  SteadyTime trouble_began{};
};

}  // namespace holdfast::controller
