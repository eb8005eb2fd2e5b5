// The slots of one pool, as one replica knows them. It has the attempts that jobs' records and
// workers' Leases place there, the slots that are promised, and the jobs that wait. All of it can
// be lost: the next owner makes it from the caches. An event costs what it changes, not what there
// is. Loop only; times are parameters.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/worker_protocol.h"
#include "operator/codecs/job_codec.h"
#include "operator/pools/slot_line.h"
#include "reconciler/pool/pool.h"
#include "reconciler/pool/work.h"
#include "reconciler/types.h"

namespace holdfast::controller {

struct AttemptOrder {
  bool operator()(const AttemptId& a, const AttemptId& b) const {
    return std::tie(a.job_uid, a.run, a.attempt) < std::tie(b.job_uid, b.run, b.attempt);
  }
};

class PoolBook {
 public:
  // A promise holds until the cache shows a later version of the job, or for this long.
  static constexpr std::chrono::seconds kPromise{10};
  // Of a worker whose records do not say it: the longest that the schema allows.
  static constexpr std::chrono::seconds kLongestDuration{reconciler::kMaxLeaseSeconds};
  // The most slots that one look at a job may take.
  static constexpr std::int64_t kMaxOffers = SlotLine::kMostAtOnce;

  // An attempt that a job's status places on a worker. It is open, or its end is on record: a run
  // in back-off names its last worker until its next attempt, so there may be many of those.
  struct Place {
    std::string job_name;
    std::int64_t message = 0;  // Job::message
    bool alone = false;        // Run::alone
    SteadyTime since{};        // when its job began to wait for the slot, as far as is known
  };
  using Places = std::map<AttemptId, Place, AttemptOrder>;

  // The job as the cache has it now; gone. The UIDs of the workers whose places have changed.
  std::vector<std::string> put(const CachedJob& job, SteadyTime now);
  std::vector<std::string> erase(const std::string& job_uid);

  // The worker as its Leases show it now. `takes`: it may get new attempts.
  void put_worker(const reconciler::PoolView::Worker& offer, std::int64_t slots, bool takes,
                  const Work& work, const WorkerReport& report);
  void erase_worker(const std::string& uid);

  // See Places (operator/jobs/places.h).
  reconciler::PoolView offer(const CachedJob& job, SteadyTime now);
  void ask(const CachedJob& job, std::int64_t runs, std::int64_t alone, SteadyTime now);
  // False: the status has no new attempt on a worker.
  bool placed(const CachedJob& job, const reconciler::Status& next, SteadyTime now);
  // The status was refused that placed() was about.
  void not_placed(const CachedJob& job, SteadyTime now);
  // For how long the job has waited for a slot, and since the last job got one.
  reconciler::TurnWait wait_of(const std::string& job_uid, SteadyTime now) const;

  // Drops promises that are too old. When the next one will be; none: there is none.
  std::optional<Duration> expire(SteadyTime now);
  // The names of jobs to look at because there are free slots, or empty workers for runs that need
  // one of their own.
  std::vector<std::string> wake(SteadyTime now);
  bool may_wake() const;

  // The open places on this worker; and those of attempts whose end is on record.
  const Places& places(const std::string& worker_uid) const;
  const Places& closed_places(const std::string& worker_uid) const;
  // The name of the job with this place, open or not; empty: there is none.
  std::string job_at(const std::string& worker_uid, const AttemptId& id) const;
  std::vector<reconciler::Placed> open_places(const std::string& worker_uid) const;
  // The attempts of this worker: entries, open places and promises, each once.
  std::int64_t attempts(const std::string& worker_uid) const;
  // A status names the worker, or will.
  bool is_named(const std::string& worker_uid) const;
  // Only a run that needs a worker of its own gets a slot of it, or has one.
  bool is_kept(const std::string& worker_uid) const;
  // Since the attempt's job began to wait for the slot; none: it has no open place there.
  std::optional<Duration> waited(const std::string& worker_uid, const AttemptId& id,
                                 SteadyTime now) const;
  // The workers that have places on record, but no Leases.
  std::vector<std::string> missing() const;
  bool is_missing(const std::string& worker_uid) const;
  // How long its processes may outlast its Leases, as the records of its places say. It never
  // changes: an agent reads it once, from its pod.
  std::chrono::seconds lease_duration(const std::string& worker_uid) const;
  // The name of the job; empty: it has no place here and does not wait.
  std::string name_of(const std::string& job_uid) const;

  // All runs that wait, and since when the oldest of their jobs exists.
  std::int64_t wanted() const { return line_.wanted() + alone_line_.wanted(); }
  // Of those, runs that need a worker of their own.
  std::int64_t wanted_alone() const { return alone_line_.wanted(); }
  std::optional<Time> oldest() const;
  std::vector<std::string> waiting_names() const;
  // Slots that any run may take. Those of kept workers are not among them.
  std::int64_t free() const { return free_; }
  // With them, what runs may take that need a worker of their own.
  std::int64_t room() const { return free_ + empty_workers(); }
  std::int64_t busy() const { return busy_; }
  std::int64_t slots() const { return slots_; }
  // For how long jobs have waited while a slot was free.
  Duration lag(SteadyTime now) const;
  bool empty() const {
    return jobs_.empty() && workers_.empty() && line_.empty() && alone_line_.empty();
  }

 private:
  struct Promised {
    AttemptId id;
    bool alone = false;
  };
  struct Worker {
    bool there = false;  // its Leases are
    reconciler::PoolView::Worker offer;
    std::chrono::seconds recorded{0};  // the duration; zero: no record says it
    std::int64_t slots = 0;
    bool takes = false;
    std::vector<AttemptId> entries;
    std::vector<AttemptId> over;  // answered by an end
    Places open;
    Places closed;
    std::vector<Promised> promised;
    std::int64_t used = 0;
    bool alone = false;  // it has an attempt of a run that needs a worker of its own
    bool kept = false;   // it is kept free for such a run, or until it is
    bool takes_any() const { return takes && !alone && !kept; }
    bool takes_alone() const { return takes && used == 0; }
    Places& places(bool is_open) { return is_open ? open : closed; }
    bool has_places() const { return !open.empty() || !closed.empty(); }
    bool is_over(const AttemptId& id) const;
    bool has_entry(const AttemptId& id) const;
  };
  struct Ref {
    std::string worker;
    AttemptId id;
    bool open = true;
    std::int64_t message = 0;
    bool alone = false;
    friend bool operator==(const Ref& a, const Ref& b) {
      return a.open == b.open && a.message == b.message && a.alone == b.alone &&
             a.worker == b.worker && a.id == b.id;
    }
  };
  struct Job {
    std::string name;
    std::vector<Ref> places;  // in the order of the runs
    std::vector<Ref> promises;
    std::uint64_t promised_at = 0;  // the version of the job
    SteadyTime promised_until{};
    std::optional<SteadyTime> waited_since;  // it has left the line
  };

  // The workers whose places have changed.
  std::vector<std::string> set_places(const CachedJob& job, Job& known, SteadyTime now);
  void drop_promises(Job& job);
  // Entries, open places and promises; all of them, or those without an end in the Lease.
  static std::int64_t count(const Worker& worker, bool all);
  void recount(Worker& worker);
  void forget_if_empty(const std::string& uid);
  static bool has_alone(const Worker& worker);
  // Which workers are kept free.
  void keep_free();
  std::int64_t empty_workers() const;
  std::vector<reconciler::PoolView::Worker> offer_empty(const CachedJob& job, SteadyTime now);
  std::optional<SteadyTime> waits_since(const std::string& job_uid) const;
  void watch_lag(SteadyTime now);
  std::int64_t wants(const CachedJob& job) const;
  void sum(const Worker& worker, int sign);

  std::unordered_map<std::string, Job> jobs_;  // with places or promises, by UID
  std::unordered_map<std::string, Worker> workers_;
  std::deque<std::pair<SteadyTime, std::string>> promises_;  // until when, of which job
  SlotLine line_;
  SlotLine alone_line_;    // of runs that need a worker of their own
  std::int64_t kept_ = 0;  // workers
  // Sums over the workers that take attempts.
  std::int64_t free_ = 0;
  std::int64_t busy_ = 0;
  std::int64_t slots_ = 0;
  std::optional<SteadyTime> last_turn_;
  std::optional<SteadyTime> could_since_;
};

}  // namespace holdfast::controller
