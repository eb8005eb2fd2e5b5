// A worker of a pool, as one replica knows it. Loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "operator/pools/newest.h"
#include "operator/pools/worker_leases.h"
#include "operator/pools/worker_pod.h"
#include "reconciler/pool/size.h"
#include "reconciler/pool/work.h"
#include "reconciler/pool/worker.h"

namespace holdfast::pools {

struct Worker {
  std::string namespace_;
  std::string pool_name;
  std::string pod_uid;
  std::string pod_name;  // empty: not known yet
  std::string pool_uid;  // as its Leases last had it; empty: not known

  Newest<CachedWorkerPod> pod;
  Newest<CachedWorkerLease> lease;
  Newest<CachedWorkerLease> work;

  // Its pod, as this process has seen it.
  struct PodHistory {
    bool was_there = false;
    reconciler::PodSightings sightings;  // `placed` and `elsewhere`: of its node
    Time last_seen{};                    // when its last version came
    // With which its agent runs. Zero: this process has not seen its pod.
    std::chrono::seconds agent_duration{0};
    // This version of the pod comes. `known`: the version before; null: none.
    void see(const CachedWorkerPod& shown, const CachedWorkerPod* known, Time now);
  };
  PodHistory pod_history;

  // Our deletion of its pod.
  struct Removal {
    bool accepted = false;  // by the API server, or it is on its way
    int failures = 0;
    SteadyTime next_try{};
  };
  Removal removal;

  // Of both Leases, for at_place(). `read_after` is not set.
  reconciler::WorkerView view;

  // What it shall do.
  struct Duty {
    bool takes = false;    // new attempts
    bool drains = false;   // it gets no attempt any more: the plan of its pool wants that
    bool marking = false;  // the write that says so is on its way, or its answer was lost
  };
  Duty duty;

  // The time without an attempt, see idle_for().
  struct Rest {
    std::optional<SteadyTime> since;  // as this process has seen it
    bool seen_otherwise = false;      // this process has seen it busy, or not live
  };
  Rest rest;

  // When this process last did or saw this. None: it has not.
  struct Moments {
    std::optional<SteadyTime> work_written;    // its work Lease
    std::optional<SteadyTime> revoke_written;  // its worker Lease, to revoke it
    std::optional<SteadyTime> cut_off_seen;    // the worker Lease was cut off first
  };
  Moments moments;

  // A verdict of an attempt waits for a live read of the worker Lease: a watch may be open and show
  // nothing.
  struct LiveRead {
    bool wanted = false;
    std::optional<SteadyTime> last;
  };
  LiveRead live_read;

  std::string key() const { return namespace_ + "/" + pod_uid; }
  std::string pool_key() const { return namespace_ + "/" + pool_name; }
  // In the queue of reconciles.
  std::string queue_key() const { return pool_key() + "#" + pod_uid; }
  // Its Leases can be read, and are as we have made them.
  bool is_readable() const;
  bool is_draining() const;
  reconciler::WorkerState state() const;
  // How long its processes may outlast its last renewal. Its agent's value counts, or else its
  // Leases', which are made with it, or else kMaxLeaseSeconds.
  std::chrono::seconds duration() const;
  // Sets `view` from the Leases.
  void set_view();
  // Without an attempt, since the operator last wrote its work Lease: maybe before this process.
  Duration idle_for(SteadyTime steady, Time now) const;
  std::int64_t slots() const { return pod ? pod->worker.slots : 0; }
};
using WorkerPtr = std::shared_ptr<Worker>;

// News for the pool's jobs: the answer or the entry of a place, or the worker's state, has changed.
struct PlaceNews {
  bool of_open = false;        // all open places
  bool of_closed = false;      // all others
  std::vector<AttemptId> ids;  // and these
};
PlaceNews place_news(const reconciler::WorkerView& before, const reconciler::WorkerView& after);

// How many attempts the worker has given back between these two.
std::int64_t handed_back(const reconciler::WorkerView& before, const reconciler::WorkerView& after);

}  // namespace holdfast::pools
