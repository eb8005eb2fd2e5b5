// One operator process in the random world: a cache that lags, the memory that a crash takes, and
// an executor that performs a decision's writes one by one and may die, lose or repeat any of them.
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

  // Forgets everything; comes back with an old list.
  void crash();
  void pause(bool paused) { paused_ = paused; }
  void cut_watch(bool cut);
  // Time has passed: sees the nodes' Leases, unless it is paused or cut off.
  void observe();
  // The cache moves on: to the end, or some steps.
  void sync(bool fully);
  // One write that is still to be done, or a decision and its first write. True: something was
  // decided or done.
  bool step();
  void faults(bool on) { faults_ = on; }

  // When a decision asked to be woken, or must be tried again after an error.
  std::optional<Time> wake() const { return wake_; }
  bool has_news() const { return news_; }
  bool busy() const { return next_write_ < writes_.size(); }
  // Writes that the API server took.
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

  // What a crash takes.
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
  std::map<std::int64_t, std::string> existed_;  // attempts whose pod was known, and its UID
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
