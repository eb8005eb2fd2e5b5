// The slots of one pool, as one replica knows them: who holds them, who was promised one, and who
// waits. All of it can be lost: the next owner makes it from the caches. An event costs what it
// changes, not what there is. Loop only; times are parameters.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "operator/codecs/job_codec.h"
#include "operator/pools/pool_slots.h"
#include "operator/pools/slot_lines.h"
#include "reconciler/types.h"

namespace holdfast::pools {

class PoolBook {
 public:
  // A promise holds until the cache shows a later version of the job, or for this long.
  static constexpr std::chrono::seconds kPromise{10};
  // The most slots that one look at a job may take.
  static constexpr std::int64_t kMaxOffers = SlotLine::kMostAtOnce;

  // The job as the cache has it now; gone. The UIDs of the workers whose places have changed.
  std::vector<std::string> put(const codecs::CachedJob& job, SteadyTime now);
  std::vector<std::string> erase(const std::string& job_uid);

  // The worker as its Leases show it now. `takes`: it may get new attempts.
  void put_worker(const reconciler::PoolView::Worker& offer, std::int64_t slots, bool takes,
                  const Work& work, const WorkerReport& report);
  void erase_worker(const std::string& uid);

  // See Places (operator/jobs/places.h).
  reconciler::PoolView offer(const codecs::CachedJob& job, SteadyTime now);
  void ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t alone, SteadyTime now);
  // False: the status has no new attempt on a worker.
  bool placed(const codecs::CachedJob& job, const reconciler::Status& next, SteadyTime now);
  // The status was refused that placed() was about.
  void not_placed(const codecs::CachedJob& job, SteadyTime now);

  // Drops promises that are too old. Returns when the next one will be; none: no promise is left.
  std::optional<Duration> expire(SteadyTime now);
  // The names of jobs to look at because there are free slots, or empty workers for runs that need
  // one of their own.
  std::vector<std::string> wake(SteadyTime now);
  bool may_wake() const;

  // The name of the job; empty: it has no place here and does not wait.
  std::string name_of(const std::string& job_uid) const;
  const PoolSlots& workers() const { return slots_; }
  const SlotLines& lines() const { return lines_; }
  // Free slots, and empty workers for waiting runs that need a worker of their own.
  std::int64_t room() const { return slots_.free() + empty_workers(); }
  // For how long jobs have waited while a slot was free.
  Duration lag(SteadyTime now) const;
  bool empty() const { return jobs_.empty() && slots_.all().empty() && lines_.empty(); }

  // Throws if what is kept twice disagrees (core/invariant.h). Checked as SlotLine::check() is,
  // which it does not call.
  void check() const;

 private:
  struct Ref {
    std::string worker;
    AttemptId id;
    bool open = true;
    std::int64_t message = 0;
    bool alone = false;
    bool operator==(const Ref&) const = default;
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
  std::vector<std::string> set_places(const codecs::CachedJob& job, Job& known, SteadyTime now);
  void drop_promises(Job& job);
  std::int64_t empty_workers() const;
  std::vector<reconciler::PoolView::Worker> offer_empty(const codecs::CachedJob& job,
                                                        SteadyTime now);
  std::int64_t wants(const codecs::CachedJob& job) const;
  // After each change.
  void keep_free();
  void watch_lag(SteadyTime now);

  std::unordered_map<std::string, Job> jobs_;  // with places or promises, by UID
  PoolSlots slots_;
  SlotLines lines_;
  std::deque<std::pair<SteadyTime, std::string>> promises_;  // until when, of which job
  std::optional<SteadyTime> could_since_;                    // a job waits, and a slot is free
};

}  // namespace holdfast::pools
