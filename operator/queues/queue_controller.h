// The controller of JobQueues: it admits jobs. One replica does so for all queues and jobs with
// queues of a namespace, the holder of the namespace's shard. The rules are in docs/queues.md;
// reconciler::decide_queue() decides.
//
// A reconcile of a queue has these steps:
// 1. Claim the queue, if this tenure has not, and wait until the caches are as new as the claim.
// 2. Admit the jobs that are due, all in one write of the queue's status.
// 3. Wake the controller of jobs for each of them. It writes their intents.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/cache/cache_check.h"
#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/jobs/permits.h"
#include "operator/jobs/pod_shards.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/queues/coming_pods.h"
#include "operator/queues/queue_book.h"

namespace holdfast::controller {

// Writes of queues in flight: half of them for one namespace at most.
inline constexpr int kQueueWorkers = 4;

// A queue as metrics show it.
struct QueueCount {
  std::string namespace_;
  std::string name;
  std::int64_t running = 0;  // permits that are out
  std::int64_t waiting = 0;
  Duration oldest_wait{0};
  Duration lag{0};  // for how long a job could have been admitted and was not
};

class QueueController : public Controller, public Permits {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    Telemetry& telemetry;
    // Of job_kind(), pod_kind() (with the index kByJob) and queue_kind().
    cache::View<CachedJob> jobs;
    cache::View<CachedPod> pods;
    cache::View<CachedQueue> queues;
    Membership& membership;
    const PodShards& pod_shards;
    // Look at the job with this key ("namespace/name") again.
    std::function<void(const std::string& key, Priority priority)> look_at;
    // Nothing of the run's last attempt, which has ended, runs on its worker any more.
    std::function<bool(const CachedJob& job, const reconciler::Run& run)> has_left;
  };
  explicit QueueController(Dependencies dependencies);

  void begin() override {
    began_ = loop_.now();
    pool_.start();
  }
  void stop(std::function<void()> idle) override { pool_.stop(std::move(idle)); }

  // The shard was gained, or kept.
  void look_at_all(int shard) override;
  // The pods of these shards in this watched namespace were read; "" means all.
  void begin_pods(const std::set<int>& shards, const std::string& watched);
  // A cache has advanced.
  void on_progress() override;
  void time_travelled() override;

  reconciler::PermitView of(const CachedJob& job) const override;
  void ask(const CachedJob& job, bool wants, bool pod_may_come) override;

  // For metrics: the queues in the shards held here.
  std::vector<QueueCount> counts() const;

 private:
  void on_job(const cache::View<CachedJob>::Change& change);
  void on_pod(const cache::View<CachedPod>::Change& change);
  void on_queue(const cache::View<CachedQueue>::Change& change);
  void put(const CachedJob& job);
  OldPods old_pods(const CachedJob& job);
  bool any_slot_is_taken(const CachedJob& job) const;
  void forget_rest(const CachedJob& job);
  void look_at_unsure();
  std::optional<Duration> renew_pods(const std::string& ns);
  std::optional<Duration> look_at_coming(const std::string& ns);
  std::shared_ptr<QueueBook> book_of(const std::string& key);
  QueuePtr queue(const std::string& key) const;
  bool has_read_queues(const std::string& ns) const;
  bool is_missing(const std::string& key) const;
  void look_at_waiting(const std::string& key);
  void look_at_unread();
  void forget_if_empty(const std::string& key);

  Task<ReconcileResult> reconcile(std::string key);
  reconciler::QueueView view(const CachedQueue& queue, QueueBook& book, const std::string& self,
                             std::uint64_t& version);
  bool caches_are_new(const std::string& ns, const QueueBook& book) const;
  std::optional<Duration> renew_caches(const std::string& key, QueueBook& book);
  Task<Status> write(QueuePtr queue, std::uint64_t version, reconciler::QueueStatus status,
                     Ownership::Claim claim, std::uint64_t& written);
  void look_at_admitted(const CachedQueue& queue, QueueBook& book);
  void tell_admitted(const CachedQueue& queue, QueueBook& book,
                     const std::vector<std::string>& uids);
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  Telemetry& telemetry_;
  cache::View<CachedJob> jobs_;
  cache::View<CachedPod> pods_;
  cache::View<CachedQueue> queues_;
  Membership& membership_;
  const PodShards& pod_shards_;
  std::function<void(const std::string& key, Priority priority)> look_at_;
  std::function<bool(const CachedJob& job, const reconciler::Run& run)> has_left_;
  cache::Moments moments_;
  cache::CacheCheck jobs_check_;
  cache::CacheCheck pods_check_;
  ReconcilePool pool_;
  std::unordered_map<std::string, std::shared_ptr<QueueBook>> books_;  // by the queue's key
  std::unordered_set<std::string> behind_;  // queues that wait for the caches
  // Queues that a job has asked for while nobody knew whether they are there.
  mutable std::unordered_set<std::string> unread_;
  SteadyTime began_{};
  // Jobs with podReplacementPolicy Failed of which no attempt runs: when that was first seen, by
  // UID. Until the cache of pods is shown to be as new, they keep their permits.
  std::unordered_map<std::string, cache::Moment> rested_;
  struct Unsure {
    cache::Moment looked_at = 0;                        // the cache was this new
    std::unordered_map<std::string, SteadyTime> since;  // by the job's key
  };
  std::unordered_map<std::string, Unsure> unsure_;  // by namespace
  ComingPods coming_;
};

}  // namespace holdfast::controller
