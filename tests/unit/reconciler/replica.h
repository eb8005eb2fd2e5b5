// One operator process in the random world. It has a cache that lags, and memory that a crash
// loses. Its executor performs a decision's status first. Then each run's writes follow in their
// own order, side by side with other runs'. It may die, lose a write, or repeat it.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

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
  // Writes the work Leases that it believes to be out of date. True: it wrote one.
  bool serve_workers();
  void faults(bool on) { faults_ = on; }

  // When a decision must be repeated: at its wake-up time, or after an error.
  std::optional<Time> wake() const { return wake_; }
  bool has_news() const { return news_; }
  bool busy() const { return status_ || !chains_.empty(); }
  // Its last decision asks for a permit.
  bool asks_permit() const { return asks_since_.has_value(); }
  // Writes that the API server accepted.
  int writes() const { return applied_; }

 private:
  // What it remembers of one attempt.
  struct AttemptMemory {
    std::vector<Time> intents;  // that it has sent, whatever the answers were
    std::string pod_uid;        // of the first pod that it made or saw
    std::optional<Time> bare_since;
    std::optional<CreationRefusal> refusal;
    Time retry_at{};
  };
  // Writes that are performed in this order.
  using Chain = std::deque<Write>;

  void start();
  JobView view();
  void sync_workers(bool fully);
  void forget(const Status& status);
  void observe_nodes(JobView& view);
  void observe_cancel(JobView& view);
  void observe_queue(JobView& view) const;
  static void observe_targets(JobView& view);
  void observe_pool(JobView& view) const;
  SlotView slot_of(const JobView& view, const Run& run);
  // The places of attempts on workers, as pods.
  void show_slots(JobView& view);
  void ask_slots(const JobView& seen, std::int64_t runs);
  void ask_permit(const JobView& seen, bool wants);
  // `looked`: the indexes of runs whose pods were read live.
  void observe_runs(const std::vector<std::int64_t>& looked, JobView& view);
  void look_live(const std::vector<std::int64_t>& runs, JobView& view);
  std::string text(const JobView& view, const Decision& decision) const;
  void plan(const JobView& seen, std::vector<Write> writes);
  bool perform(bool fresh);
  void record_intents(const Status& status);
  Answer send(const Write& write, bool fresh);
  void learn(const Write& write, Answer answer);

  World& world_;
  Rng& rng_;
  const int id_;
  bool faults_ = true;
  bool paused_ = false;
  int applied_ = 0;

  // Lost in a crash.
  std::size_t job_seen_ = 0;
  std::size_t pods_seen_ = 0;
  bool news_ = true;
  std::uint64_t own_version_ = 0;
  Time last_write_{};
  LiveClock clock_;
  bool watch_open_ = true;
  RecordTracker leases_;
  std::map<std::string, Duration> missing_since_;
  std::map<std::int64_t, AttemptMemory> attempts_;
  std::optional<WriteStatus> status_;  // to be performed before the chains
  std::vector<Chain> chains_;
  std::uint64_t decided_on_ = 0;
  std::int64_t decided_attempt_ = 0;
  std::optional<Time> wake_;
  std::optional<Time> cancelling_since_;
  // Of the queue, as it has heard of it.
  std::optional<std::int64_t> admitted_;
  bool no_queue_ = false;
  std::optional<Time> asks_since_;
  // Of the workers: the last event, and the version up to which it knows of no other.
  std::size_t leases_seen_ = 0;
  std::uint64_t leases_version_ = 0;
  std::map<std::string, Duration> lost_workers_;  // without a Lease, since this live time
  bool no_pool_ = false;
  std::optional<Time> awaits_since_;
};

}  // namespace holdfast::reconciler::testing
