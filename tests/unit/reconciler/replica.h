// One operator process in the random world. It has a cache that lags, and memory that a crash
// loses. Its executor performs a decision's writes one by one, and may die, lose a write, or repeat
// it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "reconciler/staleness.h"
#include "tests/unit/reconciler/world.h"

namespace holdfast::reconciler::testing {

class Replica {
 public:
  Replica(World& world, Rng& rng, int id) : world_(world), rng_(rng), id_(id) { start(); }

  // Forgets everything, and restarts with an old list.
  void crash();
  void pause(bool paused) { paused_ = paused; }
  void cut_watch(bool cut);
  // After time has passed: sees the nodes' Leases, unless it is paused or cut off.
  void observe();
  // Advances the cache: to the end, or some steps.
  void sync(bool fully);
  // Performs one pending write, or a decision and its first write. True: it did something.
  bool step();
  void faults(bool on) { faults_ = on; }

  // When a decision must be repeated: at its wake-up time, or after an error.
  std::optional<Time> wake() const { return wake_; }
  bool has_news() const { return news_; }
  bool busy() const { return next_write_ < writes_.size(); }
  // Writes that the API server accepted.
  int writes() const { return applied_; }

 private:
  void start();
  JobView view();
  void look_live(JobView& view);
  void remember(const JobView& view);
  std::string text(const JobView& view, const Decision& decision) const;
  bool perform(bool fresh);
  Answer send(const Write& write, bool fresh);
  void learn(const Write& write, Answer answer);

  World& world_;
  Rng& rng_;
  const int id_;
  bool faults_ = true;
  bool paused_ = false;
  int applied_ = 0;

  // Lost in a crash.
  std::int64_t intent_attempt_ = 0;
  std::optional<Time> intent_stamp_;
  std::size_t job_seen_ = 0;
  std::size_t pods_seen_ = 0;
  bool news_ = true;
  std::uint64_t own_version_ = 0;
  Time last_write_{};
  LiveClock clock_;
  bool watch_open_ = true;
  RecordTracker leases_;
  std::map<std::string, Duration> missing_since_;
  std::map<std::int64_t, std::string> existed_;  // the known pods' UIDs, by attempt
  std::optional<std::pair<std::int64_t, Time>> no_pod_since_;
  std::optional<std::pair<std::int64_t, CreationRefusal>> refusal_;
  Time retry_at_{};
  std::vector<Write> writes_;
  std::size_t next_write_ = 0;
  std::uint64_t decided_on_ = 0;
  std::int64_t decided_attempt_ = 0;
  std::optional<Time> wake_;
};

}  // namespace holdfast::reconciler::testing
