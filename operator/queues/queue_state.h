// What one replica knows of all queues and their permits. It learns them from the watches of
// queues, jobs and pods, and from the answers to its own writes. The status of a queue has the
// admissions of an earlier owner. There is a QueueBook for each queue that has a job.
//
// It wakes a queue when a change may admit a job. It wakes the controller of jobs when a job's
// queue appears or goes. It answers what that controller asks (Permits).
//
// Loop only. It writes nothing and sends no request; OldPodsMonitor may.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/work_queue.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/permits.h"
#include "operator/queues/old_pods_monitor.h"
#include "operator/queues/queue_book.h"

namespace holdfast::queues {

// A queue as metrics show it.
struct QueueCount {
  std::string namespace_;
  std::string name;
  std::int64_t running = 0;  // permits that are out
  std::int64_t waiting = 0;
  Duration oldest_wait{0};
  Duration lag{0};  // for how long a job could have been admitted and was not
};

class QueueState : public jobs::Permits {
 public:
  struct Dependencies {
    Loop& loop;
    const ServerClock& clock;
    cache::View<codecs::CachedJob> jobs;
    cache::View<codecs::CachedPod> pods;
    cache::View<CachedQueue> queues;
    const membership::Membership& membership;
    OldPodsMonitor& old_pods;
    std::function<void(const std::string& key)> wake;  // the queue with this key
    // Look at the job with this key again.
    std::function<void(const std::string& key, controller::Priority priority)> look_at;
  };
  explicit QueueState(Dependencies dependencies);

  // The caches are synced.
  void begin() { began_ = deps_.loop.now(); }
  void wake_all(int shard);
  // The pods of these shards in this watched namespace were read; "" means all.
  void begin_shards(const std::set<int>& shards, const std::string& watched);
  // A cache has advanced.
  void on_progress();
  void time_travelled();

  reconciler::PermitView of(const codecs::CachedJob& job) const override;
  void ask(const codecs::CachedJob& job, bool wants, bool pod_may_come) override;

  QueuePtr queue(const std::string& key) const { return deps_.queues.get(key); }
  // Never null.
  std::shared_ptr<QueueBook> book_of(const std::string& key);
  // Null: nothing is known of the queue.
  QueueBook* find(const std::string& key) const;
  // A book without a queue and without jobs is of no use.
  void forget_if_empty(const std::string& key);
  // Jobs of this namespace whose pods do not come any more give their permits back. Returns when to
  // call it again.
  std::optional<Duration> give_back(const std::string& namespace_);

  // For metrics: the queues in the shards held here.
  std::vector<QueueCount> counts() const;

 private:
  void on_job(const cache::View<codecs::CachedJob>::Change& change);
  void on_pod(const cache::View<codecs::CachedPod>::Change& change);
  void on_queue(const cache::View<CachedQueue>::Change& change);
  void put(const codecs::CachedJob& job);
  void look_at_waiting(const std::string& key);
  void look_at_unsure();
  void look_at_unread();
  bool has_read_queues(const std::string& ns) const;
  Time now() const { return deps_.clock.now(deps_.loop.now()); }

  Dependencies deps_;
  std::unordered_map<std::string, std::shared_ptr<QueueBook>> books_;  // by the queue's key
  // Queues that a job has asked for while nobody knew whether they are there.
  mutable std::unordered_set<std::string> unread_;
  SteadyTime began_{};
};

}  // namespace holdfast::queues
