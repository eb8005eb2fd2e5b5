// The controller of JobQueues: it admits jobs. One replica does so for all queues and jobs with
// queues of a namespace, the holder of the namespace's shard. The rules are in docs/queues.md.
//
// QueueState knows the queues and their permits, and reconciler::decide_queue() decides. A
// reconcile of a queue has these steps:
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
#include <unordered_set>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "client/controller/writer.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/telemetry.h"
#include "operator/jobs/watched_shards.h"
#include "operator/membership/membership.h"
#include "operator/queues/cache_proof.h"
#include "operator/queues/old_pods_monitor.h"
#include "operator/queues/queue_state.h"

namespace holdfast::queues {

// Writes of queues in flight: half of them for one namespace at most.
inline constexpr int kQueueWorkers = 4;

class QueueController : public controller::Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    jobs::Telemetry& telemetry;
    // Of job_kind(), pod_kind() (with the index kByJob) and queue_kind().
    cache::View<codecs::CachedJob> jobs;
    cache::View<codecs::CachedPod> pods;
    cache::View<CachedQueue> queues;
    membership::Membership& membership;
    const jobs::WatchedShards& watched_shards;
    // Look at the job with this key ("namespace/name") again.
    std::function<void(const std::string& key, controller::Priority priority)> look_at;
    // Nothing of the run's last attempt, which has ended, runs on its worker any more.
    std::function<bool(const codecs::CachedJob& job, const reconciler::Run& run)> has_left;
    std::function<reconciler::GuardView()> guard;
  };
  explicit QueueController(Dependencies dependencies);

  void begin() override {
    state_.begin();
    pool_.start();
  }
  void stop(std::function<void()> idle) override { pool_.stop(std::move(idle)); }

  // The shard was gained, or kept.
  void look_at_all(int shard) override { state_.wake_all(shard); }
  // The pods of these shards in this watched namespace were read; "" means all.
  void begin_shards(const std::set<int>& shards, const std::string& watched) {
    state_.begin_shards(shards, watched);
  }
  void on_progress() override;
  void time_travelled() override;

  jobs::Permits& permits() { return state_; }
  // For metrics: the queues in the shards held here.
  std::vector<QueueCount> counts() const { return state_.counts(); }

 private:
  Task<controller::ReconcileResult> reconcile(std::string key);
  reconciler::QueueView view(const CachedQueue& queue, QueueBook& book, const std::string& self,
                             std::uint64_t& version);
  Task<Result<>> write(QueuePtr queue, std::uint64_t version, reconciler::QueueStatus status,
                       controller::Gate::Claim claim, std::uint64_t& written);
  void look_at_admitted(const CachedQueue& queue, QueueBook& book);
  void report_admitted(const CachedQueue& queue, QueueBook& book,
                       const std::vector<std::string>& uids);
  void wake(const std::string& key) { pool_.queue().add(key); }
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  jobs::Telemetry& telemetry_;
  membership::Membership& membership_;
  const jobs::WatchedShards& watched_shards_;
  controller::Writer writer_;
  std::function<void(const std::string& key, controller::Priority priority)> look_at_;
  const std::function<reconciler::GuardView()> guard_;
  CacheProof proof_;
  OldPodsMonitor old_pods_;
  QueueState state_;
  std::unordered_set<std::string> behind_;  // queues that wait for the caches
  controller::ReconcilePool pool_;
};

}  // namespace holdfast::queues
