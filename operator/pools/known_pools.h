// The pools and workers that one replica knows, by their keys. A pool is known by its name, even if
// it does not exist and only jobs or workers name it. Loop only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "client/cache/reach.h"
#include "core/time.h"
#include "operator/pools/pool_book.h"
#include "operator/pools/pool_codec.h"
#include "operator/pools/worker.h"
#include "reconciler/pool/size.h"

namespace holdfast::pools {

struct Pool {
  PoolBook book;
  std::map<std::string, WorkerPtr> workers;  // by pod UID

  // Workers that have places on record, but no Leases, by their UIDs.
  struct Missing {
    std::set<std::string> known_gone;  // a read of all Leases has shown that they have none
    std::set<std::string> reported;    // all of their jobs were looked at
  };
  Missing missing;

  // Names of pods that are not ours, or that lost our label: until when they count as taken.
  std::map<std::string, SteadyTime> taken_names;

  // The answer to our own last write of the status of the pool with this UID.
  struct Written {
    std::string uid;
    reconciler::PoolStatus status;
    std::uint64_t version = 0;
    std::optional<SteadyTime> when;
    std::uint64_t outdated = 0;  // a conflict has shown that there is a newer version than this one
  };
  Written written;

  // With which hold of the shard this process plans, and since when it has read all that it needs.
  struct Plans {
    std::uint64_t tenure = 0;
    SteadyTime since{};
  };
  Plans plans;
  std::optional<reconciler::PoolState::Refusal> refusal;

  // The holder that we saw on record (PoolStatus::holder), and since when (cache::Reach). Also
  // whether we have seen all pods that were made before.
  struct Owner {
    std::string holder;
    cache::Moment since = 0;
    bool knows_pods = false;
  };
  Owner owner;

  bool empty() const { return book.empty() && workers.empty(); }
};
using KnownPool = std::shared_ptr<Pool>;

class KnownPools {
 public:
  // `key`: "namespace/name". The first makes the pool if it is not known, the second returns null.
  KnownPool pool(const std::string& key);
  KnownPool find(const std::string& key) const;
  void forget_if_empty(const std::string& key);
  const std::unordered_map<std::string, KnownPool>& pools() const { return pools_; }

  // The first makes the worker; null: its pool or its UID is not known, either.
  WorkerPtr worker(const std::string& ns, const std::string& pool, const std::string& pod_uid);
  WorkerPtr find_worker(const std::string& ns, const std::string& pod_uid) const;
  // Nothing of it is there any more.
  void forget_if_gone(const Worker& worker);
  // By namespace and pod UID.
  const std::unordered_map<std::string, WorkerPtr>& workers() const { return workers_; }

  // By the UID of its worker Lease. Null: no such worker.
  WorkerPtr with_lease(const std::string& lease_uid) const;
  void has_lease(const std::string& lease_uid, WorkerPtr worker);
  void lost_lease(const std::string& lease_uid) { by_lease_.erase(lease_uid); }

 private:
  std::unordered_map<std::string, KnownPool> pools_;
  std::unordered_map<std::string, WorkerPtr> workers_;
  std::unordered_map<std::string, WorkerPtr> by_lease_;
};

}  // namespace holdfast::pools
