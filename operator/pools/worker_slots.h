// The slots of one worker and who holds them: entries of its work Lease, places that jobs' records
// name, and promises. An attempt may be all three, and counts once. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/time.h"
#include "core/worker_protocol.h"
#include "reconciler/pool/pool.h"
#include "reconciler/pool/work.h"
#include "reconciler/types.h"

namespace holdfast::pools {

struct AttemptOrder {
  bool operator()(const AttemptId& a, const AttemptId& b) const {
    return std::tie(a.job_uid, a.run, a.attempt) < std::tie(b.job_uid, b.run, b.attempt);
  }
};

struct WorkerSlots {
  // Of a worker whose records do not say it: the longest that the schema allows.
  static constexpr std::chrono::seconds kLongestDuration{reconciler::kMaxLeaseSeconds};

  // An attempt that a job's status places on the worker.
  struct Place {
    std::string job_name;
    std::int64_t message = 0;  // Job::message
    bool alone = false;        // Run::alone
    SteadyTime since{};        // when its job began to wait for the slot, as far as is known
  };
  using Places = std::map<AttemptId, Place, AttemptOrder>;
  struct Promised {
    AttemptId id;
    bool alone = false;
  };

  // Its Leases, as they show it now.
  bool there = false;
  bool takes = false;  // it may get new attempts
  std::int64_t slots = 0;
  reconciler::PoolView::Worker offer;
  std::vector<AttemptId> entries;
  std::vector<AttemptId> over;  // answered by an end

  // The records of jobs. An attempt is open, or its end is on record. There may be many closed
  // ones: a run in back-off names its last worker until its next attempt.
  Places open;
  Places closed;
  std::chrono::seconds recorded{0};  // the duration; zero: no record says it

  std::vector<Promised> promised;

  // What follows from all of this: see recount(). PoolSlots keeps it.
  std::int64_t used = 0;
  bool alone = false;  // it has an attempt of a run that needs a worker of its own
  bool kept = false;   // it is kept free for such a run, or until it is

  void set_leases(const reconciler::PoolView::Worker& its_offer, std::int64_t its_slots,
                  const Work& work, const WorkerReport& report);
  void recount();
  bool is_counted() const { return used == attempts(/*all=*/false) && alone == has_alone(); }

  Places& places(bool is_open) { return is_open ? open : closed; }
  // Entries, open places and promises: all of them, or those without an end in the Lease.
  std::int64_t attempts(bool all = true) const;
  std::vector<reconciler::Placed> open_places() const;
  // The name of the job with this place, open or not; empty: no job has it.
  std::string job_at(const AttemptId& id) const;
  // Since the attempt's job began to wait for the slot; none: it has no open place here.
  std::optional<Duration> waited(const AttemptId& id, SteadyTime now) const;
  // How long its processes may outlast its Leases, as the records of its places say. It never
  // changes: an agent reads it once, from its pod.
  std::chrono::seconds lease_duration() const;

  bool has_places() const { return !open.empty() || !closed.empty(); }
  // A status names the worker, or will.
  bool is_named() const { return has_places() || !promised.empty(); }
  // It has places on record, but no Leases.
  bool is_missing() const { return !there && has_places(); }
  // Only a run that needs a worker of its own gets a slot of it, or has one.
  bool is_kept() const { return kept || alone; }
  bool takes_any() const { return takes && !alone && !kept; }
  bool takes_alone() const { return takes && used == 0; }

 private:
  bool is_over(const AttemptId& id) const;
  bool has_entry(const AttemptId& id) const;
  bool has_alone() const;
};

}  // namespace holdfast::pools
