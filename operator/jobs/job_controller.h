// The controller of DurableJobs: queue and memory around reconciler::decide(), on the caches and
// shards that runtime::Manager has for all controllers.
//
// A reconcile of a job in one of our shards has these steps:
// 1. Wait until the caches show our own last writes.
// 2. Build the view, and decide. If a verdict needs live reads, make them and decide again.
// 3. Perform the writes.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/own_writes.h"
#include "client/controller/reconcile_pool.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/codecs/rest.h"
#include "operator/jobs/courier.h"
#include "operator/jobs/creations.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/job_memory.h"
#include "operator/jobs/job_silences.h"
#include "operator/jobs/lost_holders.h"
#include "operator/jobs/permits.h"
#include "operator/jobs/places.h"
#include "operator/jobs/pod_index.h"
#include "operator/jobs/pod_shards.h"
#include "operator/jobs/stray_pods.h"
#include "operator/membership/membership.h"
#include "operator/observe/heartbeat_monitor.h"
#include "operator/observe/namespace_looks.h"
#include "operator/observe/namespace_readings.h"
#include "operator/observe/node_monitor.h"
#include "reconciler/shards.h"

namespace holdfast::controller {

using kube::namespace_of;

// Jobs that wait to start never delay a verdict.
inline Priority priority_of(const CachedJob& job) {
  const reconciler::Phase phase = job.job.status.phase;
  const bool starts = phase == reconciler::Phase::kNone || phase == reconciler::Phase::kPending ||
                      phase == reconciler::Phase::kBackoff;
  return starts && !job.job.spec.cancel ? Priority::kStart : Priority::kFresh;
}

class JobController : public Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    Telemetry& telemetry;
    EventSink& events;
    // Shared with other controllers. `jobs` and `pods` are of job_kind() and pod_kind().
    cache::View<CachedJob> jobs;
    cache::View<CachedPod> pods;
    NodeMonitor& nodes;
    HeartbeatMonitor& heartbeats;
    WindowKeeper& windows;
    Membership& membership;
    const NamespaceReadings& readings;
    const PodShards& pod_shards;
    Permits& permits;
    Places* places = nullptr;    // null: there are no pools
    Courier* courier = nullptr;  // null: there are no targets
  };
  struct Config {
    ReconcilePool::Config pool;
    std::string agent_image;  // for jobs with `heartbeat`; empty: they wait for it
    Duration resync = std::chrono::minutes(30);
    std::vector<std::string> namespaces;  // that are watched; empty: all
  };
  JobController(Dependencies dependencies, Config config, ReconcilePool::Metrics metrics = {});
  ~JobController();

  // The caches are synced: it works on the jobs of this replica's shards from now on.
  void begin() override;
  // Call it after Membership::take_no_more(). Creations of pods are handed over as when shards
  // move: those that are slow are cancelled, and put on record, so that they cost no attempt. All
  // that may take kHandOverLimit; without creations it takes kStopGrace at most. Then no reconcile
  // begins, and those in flight get kStopGrace before their requests are cancelled. `idle` runs
  // after the last.
  static constexpr std::chrono::seconds kHandOverLimit{5};
  static constexpr std::chrono::milliseconds kStopGrace{500};
  void stop(std::function<void()> idle) override;

  // The shard's jobs are due: it was gained, or kept although it should have been handed over.
  // Forgets earlier knowledge about them.
  void look_at_all(int shard) override;
  void lost(int shard);
  // A shard will be handed over once its work in hand has ended.
  void hand_over_soon();
  // A namespace was read later than the others; "" means all.
  void begin_namespace(const std::string& watched);
  // The pods of these shards in this watched namespace were read; "" means all.
  void begin_pods(const std::set<int>& shards, const std::string& watched);
  // The pod has left the cache, but is not deleted.
  void drop_pod(const CachedPod& pod) { silences_.gone(pod); }
  // A cache has advanced. Call it after time_travelled(), if both are due.
  void on_progress() override;
  // The API server's data was set back: the versions of our own writes no longer count.
  void time_travelled() override;
  // A known worker should renew the Lease.
  bool is_worked_on(const CachedHeartbeat& lease);

  WorkQueue& queue() { return pool_.queue(); }
  // The jobs in the shards held here, by namespace and phase. The sum over all replicas is the
  // total.
  std::map<std::string, JobCensus::Phases> jobs_by_namespace() const;
  // How long the oldest `waiting.deadline` of such a job has passed without an action. Should stay
  // zero.
  Duration oldest_overdue() const;

 private:
  // The results of live reads, which replace the caches' for one reconcile.
  struct LiveRun {
    std::string pod_name;
    std::string pod_uid;  // as recorded
    std::int64_t attempt = 0;
    bool pod_known = false;     // this process knew of a pod of the attempt before the read
    bool may_be_over = false;   // the attempt is not open, and no pod of it comes any more
    bool may_not_come = false;  // no request for the pod can succeed any more
    std::string lease_name;     // empty: without heartbeat
    PodPtr pod;                 // null: it does not exist
    HeartbeatPtr lease;         // null: it does not exist
    bool read = false;          // all of it
  };
  // By the run's index; kNoRun: the last pod; below it: live_key() of an open creation's attempt.
  using Live = std::map<std::int64_t, LiveRun>;
  static std::int64_t live_key(std::int64_t attempt) { return reconciler::kNoRun - attempt; }
  class Look;  // a reconcile in flight, which may have a turn

  void look_at_job_of(const CachedPod& pod, Priority priority = Priority::kFresh);
  StrayPods::Dependencies stray_pods();
  void look_for_strays_of(const CachedJob& job);
  void on_job(const cache::View<CachedJob>::Change& change);
  void on_pod(const cache::View<CachedPod>::Change& change);
  void remember_pod(const std::string& key, const CachedPod& pod, bool is_there);
  void on_node(const std::string& node);
  void look_at_node(const CachedPod& pod);
  void on_heartbeat(const HeartbeatPtr& before, const HeartbeatPtr& after);
  void resync();

  void begin_gained();
  // `key`: what decides the shard.
  using Gained = std::function<bool(const std::string& namespace_, int shard)>;
  void look_at_all(const Gained& is_gained);
  void end_when_handed_over();
  void end_work();
  void one_ended();

  // job_creation.cc
  void begin_creation(JobPtr job, Ownership::Claim claim, std::shared_ptr<JobMemory> memory,
                      Creations::Slot turn, const reconciler::CreatePod& write, const Log& log);
  bool is_over(const CachedJob& job, std::int64_t attempt) const;
  // Those in line whose attempts this status ends are not sent any more.
  void withdraw_creations(const reconciler::Status& next, JobMemory& memory);
  Task<void> create(JobPtr job, Ownership::Claim claim, std::shared_ptr<JobMemory> memory,
                    Creations::Slot slot, reconciler::CreatePod write, Log log);
  using Meant = std::function<bool(int shard)>;
  void cancel_creations(const Meant& is_meant, bool hands_over);
  // The shard goes to another replica: its jobs begin nothing.
  bool hands_over(int shard) const;
  void settle_creations(const std::shared_ptr<JobMemory>& memory);
  void drop_memory(std::shared_ptr<JobMemory> memory);
  // The right to act on the job. An open creation keeps the claim under which it began.
  std::optional<Ownership::Claim> claim_of(const CachedJob& job) const;

  Task<ReconcileResult> reconcile(std::string key);
  Task<ReconcileResult> reconcile_claimed(std::string key, JobPtr job, Ownership::Claim claim,
                                          Look& look);
  // None: a refusal must be recorded at once; decide again.
  Task<std::optional<ReconcileResult>> reconcile_job(JobPtr job, Ownership::Claim claim,
                                                     std::shared_ptr<JobMemory> memory);
  Task<Status> confirm(const CachedJob& job, const reconciler::Decision& decision,
                       JobMemory& memory, Live& live);
  Task<Status> look(const CachedJob& job, const reconciler::Decision& decision, JobMemory& memory,
                    Live& live);
  Live runs_to_look_at(const CachedJob& job, const std::vector<std::int64_t>& runs,
                       const JobMemory& memory) const;
  void add_creations(const CachedJob& job, const std::vector<std::int64_t>& attempts,
                     JobMemory& memory, Live& chosen);
  Task<Status> look_at_run(const CachedJob& job, const JobMemory& memory, SteadyTime by,
                           LiveRun& live);
  Task<Status> look_at_job(const CachedJob& job, JobMemory& memory, SteadyTime by);
  void tell_places(const CachedJob& job, const reconciler::Decision& decision);
  // Releases pods that name this job but belong to a deleted job of the same name. `uid`: the
  // cached job's, or empty.
  Task<Status> release_strangers(std::string key, std::string uid);

  Duration collects(const CachedJob& job, const JobMemory& memory) const;
  // How long the job waits for the caches to show our own writes.
  Duration held(const std::string& key, const std::string& namespace_, JobMemory& memory);
  // The first cache that does not show them all; null: all do.
  cache::Informer* behind(const std::string& namespace_, const JobMemory& memory) const;
  bool shows_writes_for(const std::string& key) const;
  std::shared_ptr<JobMemory> remember(const CachedJob& job);
  void forget(const std::string& key);
  void drop_deliveries(const std::string& key);
  // job_view.cc
  reconciler::JobView view(const CachedJob& job, JobMemory& memory, const Live& live);
  std::vector<reconciler::PodView> pods_of(const CachedJob& job, const Live& live) const;
  void learn_highest_attempt(const CachedJob& job, JobMemory& memory) const;
  void show_slots(const CachedJob& job, reconciler::JobView& view) const;
  void observe(const CachedJob& job, JobMemory& memory, const Live& live,
               reconciler::JobView& view);
  // What is known of the run at this place in status.runs: from memory, from its Lease, from its
  // pod.
  void observe_memory(const CachedJob& job, JobMemory& memory, const Live& live,
                      reconciler::JobView& view, std::size_t place);
  void observe_lease(const CachedJob& job, JobMemory& memory, const Live& live,
                     reconciler::JobView& view, std::size_t place);
  void observe_pod(const CachedJob& job, JobMemory& memory, reconciler::JobView& view,
                   std::size_t place, const reconciler::PodView* pod);
  PodPtr granted_pod(const std::string& namespace_, const std::string& granted,
                     const LiveRun* live) const;
  void observe_leases_over(const CachedJob& job, reconciler::JobView& view);
  std::vector<reconciler::OpenCreation> open_creations(
      const CachedJob& job, JobMemory& memory, const std::vector<reconciler::PodView>& pods);
  std::optional<reconciler::OpenCreation> open_creation(const CachedJob& job, std::int64_t number,
                                                        AttemptMemory& attempt, bool is_there);
  int shard_of(const CachedPod& pod) const { return caches_.shard_of(pod); }
  int shard_of(const CachedJob& job) const { return caches_.shard_of(job); }
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Random& random_;
  Log log_;
  Telemetry& telemetry_;
  Config config_;
  JobCensus census_;
  cache::View<CachedJob> jobs_;
  cache::View<CachedPod> pods_;
  NodeMonitor& nodes_;
  HeartbeatMonitor& heartbeats_;
  Membership& membership_;
  const NamespaceReadings& readings_;
  const PodShards& pod_shards_;
  Permits& permits_;
  Places* const places_;
  Courier* const courier_;
  JobCaches caches_;
  JobSilences silences_;
  LostHolders lost_holders_;
  Executor executor_;
  NamespaceLooks namespace_looks_;
  ReconcilePool pool_;
  Creations creations_;
  StrayPods strays_;
  std::unordered_map<std::string, std::shared_ptr<JobMemory>> memory_;
  OwnWrites own_writes_;
  // Jobs with a creation in progress, or one that has ended and is not on record.
  std::unordered_set<std::shared_ptr<JobMemory>> creating_;
  std::set<int> gained_;                 // shards whose jobs must still be queued
  std::map<int, SteadyTime> gained_at_;  // shards that are held, and since when
  std::uint64_t reconciles_ = 0;         // names each one in the log
  TimerId resync_timer_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  bool handed_over_ = false;  // nothing more is to be put on record before the stop
  int to_end_ = 0;            // of the pool and the creations, when it stops
  TimerId limit_timer_ = 0;   // kHandOverLimit
  TimerId grace_timer_ = 0;   // kStopGrace
  TimerId hand_over_timer_ = 0;
  std::function<void()> idle_;
};

}  // namespace holdfast::controller
