// Decides how many workers a pool has. The plan says which pods to create, which workers to drain,
// and which pods to delete (docs/internals/workers.md, "The life of a worker"). Pure.
//
//   const PoolPlan plan = plan_pool(state);
//   // Write plan.status if it is another one than the state's. Create `create` pods with the
//   // lowest free names, mark the work Leases of `drain`, delete the pods of `remove`.
//
// The writes may come in any order, and each may be lost: the next plan is made from what is then
// seen. Two replicas that plan from the same state create pods of the same names. The state must
// include the caller's own earlier writes, or the pool is too large for a moment.
//
// Growth: a pool grows by what waits, and starting workers count as capacity. Capacity is counted
// in slots, because workers of an older template may have more or fewer slots. A run that needs a
// worker of its own takes an empty worker. It cannot use the free slots of a busy worker, and no
// other run can use the slots of its worker. Starting and live workers together are at most
// maxWorkers. Draining ones do not count once their marks are seen.
//
// Scale-in drains live workers that were idle for idleSeconds, if the other live ones have room for
// all that runs and waits. A busy worker is never drained for it. Scale-in also deletes workers
// without a node whose pods were created more than idleSeconds ago, the youngest first. It keeps a
// worker that minWorkers, a waiting run or the rollout needs. If maxWorkers was lowered, starting
// workers go first, then idle ones, then the least loaded. A worker that drains ends what it has
// begun.
//
// Rollout: at most a quarter of the workers (at least one) drain at once. The pool first makes a
// new worker for each, unless maxWorkers forbids it. Then at most a quarter is missing at once.
// Workers of an older template that have not started are deleted at once.
//
// Deletion: a pod is deleted when its worker has drained and holds nothing, or is cut off. If the
// spec has fields that this version does not know, only pods of workers that are over are deleted.
//
// Failures to start:
// A worker fails if its pod ends before it served, or fails within kShortLife after it got a node.
// It also fails if it is not live startDeadlineSeconds after its pod got a node. It fails at once
// if its pod says that it cannot start. A pod without a node waits without limit: a gate or a full
// cluster is no failure of the template.
//
// A failure is put on record, with a back-off for the whole pool. The pod stays until then, for
// humans to look at, and it may still start. Then another one replaces it. While its deletion fails
// it counts towards maxWorkers: the next ones would not start either.
//
// A worker that served and ended soon after has not failed while another one of the template has
// lived for kShortLife. Something else may have ended it. Two in a row have failed: the two that
// were created after all that serve now. So the pod of the first one stays for kShortLife. A worker
// whose commands ran out of memory has not failed, however short it lived. Their own back-offs pace
// what follows.
//
// All failures of pods that were created before the recorded next start are one failure. So a
// failure counts once, whatever was lost. A worker that starts later ends the row, and so does a
// change of the spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/pool/pool.h"

namespace holdfast::reconciler {

// The most pods that one plan creates, drains or deletes, each.
inline constexpr std::int64_t kPlanLimit = 16;
// A worker whose pod failed this soon after it got its node counts as a worker that did not start.
inline constexpr Duration kShortLife = std::chrono::minutes(1);
// 10 s, 20 s, 40 s ..., at most 5 min.
inline constexpr Duration kFirstStartDelay = std::chrono::seconds(10);
inline constexpr Duration kLongestStartDelay = std::chrono::minutes(5);
// So many failures in a row need a human: the condition Stalled.
inline constexpr std::int64_t kStalledAfter = 3;
// After a plan that had more to do than kPlanLimit.
inline constexpr Duration kNextPlan = std::chrono::seconds(1);

enum class WorkerState {
  kStarting,  // its worker Lease has no renewal yet, or does not exist
  kLive,
  kDraining,  // the work Lease or the worker's report has the mark, or the worker is revoked
  kCutOff,    // or its pod ended before it had a worker Lease
};

// A worker's pod, as it shows itself. If its agent's container has ended, the worker has, whatever
// other containers do.
struct WorkerPod {
  std::string name;
  std::string uid;
  Time created{};
  std::string node;                            // empty: it has none
  std::string hash;                            // kWorkerHashLabel
  std::int64_t slots = 1;                      // of its agent
  bool deleting = false;                       // it has a deletionTimestamp
  std::optional<Time> deleted = std::nullopt;  // when that was asked for
  bool ended = false;                          // its phase is Succeeded or Failed
  bool failed = false;                         // ... Failed
  bool out_of_memory = false;  // ... because the kernel killed all of its agent's container
  bool cannot_start = false;   // it says so, e.g. for lack of its image
  std::string trouble;         // why it does not start, in its words; empty: it does not say
};

// A worker of the pool: its pod, and what its Leases, the jobs and this process know.
struct PoolWorker {
  WorkerPod pod;
  std::optional<Time> bound;  // since when its pod has a node; none: it has none yet
  WorkerState state = WorkerState::kStarting;
  // When it could first begin: the wait for a node is no part of its life.
  Time began() const { return bound.value_or(pod.created); }
  // It has had a node for this long, and should be live.
  bool is_late(Duration start_deadline, Time now) const {
    return bound && *bound + start_deadline <= now;
  }
  // A write that marks it as draining is on its way. It counts as drained: a second choice would
  // drain two.
  bool marking = false;
  bool served = false;  // its worker Lease bears an agent's mark
  // Entries of its work Lease, and open attempts with it as their place: each attempt once. It is
  // not known how many there are if one of its Leases could not be read: then 1 at least.
  std::int64_t attempts = 0;
  // For a run that needs a worker of its own: other runs get no slot of it.
  bool kept = false;
  // How long it has been live without an attempt, as the work Lease records it or this process has
  // seen it.
  Duration idle_for{0};
  bool stays = false;  // the last request to delete its pod has failed
};

struct PoolState {
  std::string name;
  std::int64_t generation = 0;
  bool deleting = false;  // the pool itself; the garbage collector deletes its pods
  PoolSpec spec;
  std::string hash;   // of pods that would be made now
  PoolStatus status;  // as recorded
  std::vector<PoolWorker> workers;
  std::int64_t waiting = 0;          // runs without a place
  std::int64_t waiting_alone = 0;    // of those, runs that need a worker of their own
  std::optional<Time> oldest_since;  // of those
  // The last pod, or its Leases, could not be created: refused, or a quota is full. The caller
  // drops it with the next creation, and when the generation changes.
  struct Refusal {
    std::string why;
    Time at{};
  };
  std::optional<Refusal> refusal;
  // Jobs that wait ask a new process for workers first. So long nothing goes that only they need.
  Duration asking{0};
  Time now{};
};

struct PoolPlan {
  std::int64_t create = 0;
  // Nodes of workers that were cut off a short while ago while their pods did not end. New pods
  // prefer others.
  std::vector<std::string> avoid;
  std::vector<std::string> drain;   // pod UIDs
  std::vector<std::string> remove;  // pod UIDs
  // Those of `remove` that failed to start, or that may still start with an older template. They go
  // before others are created: if one cannot be deleted, one less is.
  std::vector<std::string> replace;
  PoolStatus status;
  std::optional<Duration> wake_after;  // none: only a change needs another look
};

PoolPlan plan_pool(const PoolState& state);

}  // namespace holdfast::reconciler
