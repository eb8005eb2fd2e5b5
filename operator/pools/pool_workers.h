// A pool and its workers, as one replica knows them. Each object is the newest version that a watch
// or the answer to an own write has brought. Loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/time.h"
#include "operator/pools/pool_book.h"
#include "operator/pools/pool_codec.h"
#include "operator/pools/worker_leases.h"
#include "operator/pools/worker_pod.h"
#include "reconciler/pool/size.h"
#include "reconciler/pool/work.h"
#include "reconciler/pool/worker.h"

namespace holdfast::controller {

struct Worker {
  std::string namespace_;
  std::string pool_name;
  std::string pod_uid;
  std::string pod_name;  // empty: not known yet
  std::string pool_uid;  // as its Leases last had it; empty: not known

  // Null: none is there, as far as is known.
  WorkerPodPtr pod;
  WorkerLeasePtr lease;
  WorkerLeasePtr work;
  // The versions that answers to our own writes have shown. The watch may be behind them.
  std::uint64_t own_pod = 0;
  std::uint64_t own_lease = 0;
  std::uint64_t own_work = 0;
  bool pod_was_there = false;          // this process has seen its pod
  reconciler::PodSightings sightings;  // `placed` and `elsewhere`: of its node
  Time pod_seen{};                     // when the last version of its pod came
  // With which its agent runs, as its pod has shown. Zero: this process has not seen its pod.
  std::chrono::seconds agent_duration{0};
  bool removed = false;  // the API server has accepted its pod's deletion
  // Deletions of its pod that have failed, and when the next one is tried.
  int failed_removals = 0;
  SteadyTime remove_at{};

  // Of both Leases, for at_place(). `read_after` is not set.
  reconciler::WorkerView view;
  bool takes = false;        // new attempts
  bool wants_drain = false;  // the pool's plan does
  bool marking = false;      // the write that says so is on its way, or its answer was lost
  std::optional<SteadyTime> idle_since;  // as this process has seen it
  bool seen_otherwise = false;           // this process has seen it busy, or not live
  std::optional<SteadyTime> last_write;  // of the work Lease
  std::optional<SteadyTime> cut_off_seen;
  std::optional<SteadyTime> last_revoke;  // our own last write
  // A verdict of an attempt waits for a live read of the worker Lease: a watch may be open and
  // show nothing.
  bool wants_read = false;
  std::optional<SteadyTime> last_read;

  std::string key() const { return namespace_ + "/" + pod_uid; }
  std::string pool_key() const { return namespace_ + "/" + pool_name; }
  // In the queue of reconciles.
  std::string queue_key() const { return pool_key() + "#" + pod_uid; }
  // Its Leases can be read, and are as we have made them.
  bool is_readable() const;
  bool is_draining() const;
  reconciler::WorkerState state() const;
  // How long its processes may outlast its last renewal: as its agent has it, or else as its Leases
  // have it, which are made with that.
  std::chrono::seconds duration() const;
  // Sets `view` from the Leases.
  void set_view();
  // Without an attempt, since the operator last wrote its work Lease: maybe before this process.
  Duration idle_for(SteadyTime steady, Time now) const;
  std::int64_t slots() const { return pod ? pod->worker.slots : 0; }
};
using WorkerPtr = std::shared_ptr<Worker>;

// A new version of the worker's pod has this placement. `pod` still has the version before.
void see_placement(Worker& worker, reconciler::Placement placement, Time now);

struct Pool {
  PoolBook book;
  std::map<std::string, WorkerPtr> workers;  // by pod UID
  // Workers' UIDs: a read of all Leases of the namespace has shown that they have none.
  std::set<std::string> known_gone;
  // Names of pods that are not ours, or that lost our label: until when they count as taken.
  std::map<std::string, SteadyTime> taken_names;
  std::set<std::string> told_missing;  // workers' UIDs, of which all jobs have heard

  // The answer to our own last write of the status of the pool with this UID.
  std::string uid;
  reconciler::PoolStatus written;
  std::uint64_t written_version = 0;
  std::optional<SteadyTime> last_write;
  // With which hold of the shard this process plans, and since when it has read all that it needs.
  std::uint64_t tenure = 0;
  SteadyTime planned_since{};
  std::uint64_t outdated = 0;  // a conflict has shown that there is a newer version than this one
  std::optional<reconciler::PoolState::Refusal> refusal;
  // Who was last seen on record (see PoolStatus::holder), at which moment (cache::Reach) that was,
  // and whether we have seen all pods that were made before.
  struct Owner {
    std::string holder;
    std::uint64_t since = 0;
    bool knows_pods = false;
  };
  Owner owner;
};

// What the pool's jobs should hear of: a place's answer, entry, or the worker's state is another
// one than before.
struct PlaceNews {
  bool of_open = false;        // all open places
  bool of_closed = false;      // all others
  std::vector<AttemptId> ids;  // and these
};
PlaceNews place_news(const reconciler::WorkerView& before, const reconciler::WorkerView& after);

}  // namespace holdfast::controller
