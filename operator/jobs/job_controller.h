// The controller of DurableJobs: caches, queue and memory around reconciler::decide().
//
// A reconcile of a job in one of our shards: wait until the caches show our own last writes, build
// the view, decide, confirm live if a verdict needs it, perform the writes. Loop only. Destroy it
// when the client is idle.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/cache/informer.h"
#include "operator/jobs/creations.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/job_codec.h"
#include "operator/jobs/job_memory.h"
#include "operator/jobs/job_windows.h"
#include "operator/jobs/pod_codec.h"
#include "operator/membership/membership.h"
#include "operator/observe/heartbeat_monitor.h"
#include "operator/observe/namespace_readings.h"
#include "operator/observe/node_monitor.h"
#include "operator/work/reconcile_pool.h"
#include "reconciler/outage.h"

namespace holdfast::controller {

// The indexes of pods: by their job's key, and by their node until they end.
inline constexpr const char* kByJob = "job";
inline constexpr const char* kByNode = "node";

inline const CachedPod& as_pod(const kube::ObjectPtr& object) {
  return static_cast<const CachedPod&>(*object);
}
// Empty: the pod names no job.
inline std::string job_key(const CachedPod& pod) {
  return pod.job_name.empty() ? "" : pod.namespace_ + "/" + pod.job_name;
}
inline std::string namespace_of(const std::string& key) { return key.substr(0, key.find('/')); }

// Jobs that wait to start never delay a verdict.
inline Priority priority_of(const CachedJob& job) {
  const reconciler::Phase phase = job.job.status.phase;
  const bool starts = phase == reconciler::Phase::kNone || phase == reconciler::Phase::kPending ||
                      phase == reconciler::Phase::kBackoff;
  return starts && !job.job.spec.cancel ? Priority::kStart : Priority::kFresh;
}

class JobController {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    Telemetry& telemetry;
    EventSink& events;
  };
  struct Config {
    std::vector<std::string> namespaces;  // empty: all
    Membership::Config membership;
    ReconcilePool::Config pool;
    std::string agent_image;  // for jobs with `heartbeat`; empty: they wait for it
    Duration resync = std::chrono::minutes(30);
    // The operator can never work here; the error says what to do.
    std::function<void(Error)> refuse = nullptr;
  };
  JobController(Dependencies dependencies, Config config, ReconcilePool::Metrics metrics = {});
  ~JobController();

  // Starts the caches. Once they are synced, it joins the other replicas and works on the shards
  // that it gets.
  void start();
  bool synced() const;
  // Stops cleanly. It begins no new reconciles. Those in flight get kStopGrace, then their requests
  // are cancelled. Then it frees its shards for others, closes the watches and calls `stopped`.
  // Queued work is left to the next holders.
  static constexpr std::chrono::milliseconds kStopGrace{500};
  void stop(std::function<void()> stopped);

  // The number of open watches. Per namespace that is watched by itself: jobs, pods, heartbeats.
  // Others: nodes, node Leases, this installation's Leases.
  static constexpr std::size_t kWatchesPerNamespace = 3;
  static constexpr std::size_t kOtherWatches = 3;

  // For probes and metrics: jobs, pods, nodes, node-leases, job-leases, leases.
  std::vector<cache::Informer*> informers();
  WorkQueue& queue() { return pool_.queue(); }
  Membership& membership() { return membership_; }
  // The jobs in the shards held here, by phase. The sum over all replicas is the total.
  std::map<std::string, std::size_t> jobs_by_phase() const;
  // How long the oldest `waiting.deadline` of such a job has passed without an action. Should stay
  // zero.
  Duration oldest_overdue() const;

 private:
  struct Live;  // the results of a live read, which replace the caches' for one reconcile
  class Work;   // a reconcile in flight, counted for its shard
  class Look;   // a reconcile in flight, which may have a turn

  void look_at_job_of(const CachedPod& pod, Priority priority = Priority::kFresh);
  void on_job(const cache::Change& change);
  void on_pod(const cache::Change& change);
  void remember_pod(const std::string& key, const CachedPod& pod, bool is_there);
  void on_node(const std::string& node);
  void look_at_node(const CachedPod& pod);
  void on_heartbeat(const HeartbeatPtr& before, const HeartbeatPtr& after);
  bool is_worked_on(const CachedHeartbeat& lease);
  void on_progress();
  void on_time_travel();
  void begin();
  void resync();

  // job_wanted.cc: which silences to record, and for which shards.
  void keep_windows();
  WindowKeeper::Wanted node_wanted(const std::string& node, bool missing);
  WindowKeeper::Wanted pod_wanted(const std::string& key, bool going);
  WindowKeeper::Wanted lease_wanted(const std::string& key, Duration silent);
  std::shared_ptr<const CachedJob> job_of(const CachedPod& pod);

  Membership::Handlers membership_handlers();
  void look_at_all(int shard);
  void begin_gained();
  void begin_namespace(const std::string& watched);
  using Gained = std::function<bool(const std::string& namespace_, const std::string& job_uid)>;
  void look_at_all(const Gained& is_gained);
  void refresh(std::function<void()> done);
  std::string unseen(Duration patience);

  void leave_when_idle();

  // job_creation.cc
  void begin_creation(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                      std::shared_ptr<JobMemory> memory, Creations::Slot slot,
                      const reconciler::CreatePod& write, const Log& log);
  Task<void> create(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                    std::shared_ptr<JobMemory> memory, Creations::Slot slot,
                    reconciler::CreatePod write, Log log);
  using Meant = std::function<bool(int shard)>;
  void cancel_creations(const Meant& is_meant, bool hands_over);
  void hand_over_soon();
  // The right to act on the job. An open creation keeps the claim under which it began.
  std::optional<Ownership::Claim> claim_of(const CachedJob& job) const;
  std::shared_ptr<void> keep_shard(int shard);

  Task<ReconcileResult> reconcile(std::string key);
  Task<ReconcileResult> reconcile_claimed(std::string key, std::shared_ptr<const CachedJob> job,
                                          Ownership::Claim claim);
  // None: a refusal must be recorded at once; decide again.
  Task<std::optional<ReconcileResult>> reconcile_job(std::shared_ptr<const CachedJob> job,
                                                     Ownership::Claim claim,
                                                     std::shared_ptr<JobMemory> memory);
  Task<Status> confirm(const CachedJob& job, JobMemory& memory, Live& live);
  Task<Status> look(const CachedJob& job, JobMemory& memory, Live& live);
  // Releases pods that name this job but belong to a deleted job of the same name. `uid`: the
  // cached job's, or empty.
  Task<Status> release_strangers(std::string key, std::string uid);

  // Waits until the caches show our own writes, or until it has waited long enough.
  Task<void> own_writes_shown(std::string namespace_, std::shared_ptr<JobMemory> memory);
  void wake_waiters(bool all);
  Duration held(const std::string& key, const std::string& namespace_, JobMemory& memory);
  bool lags(const std::string& namespace_, const JobMemory& memory) const;
  std::shared_ptr<JobMemory> remember(const CachedJob& job);
  void forget(const std::string& key);
  reconciler::JobView view(const CachedJob& job, JobMemory& memory, const Live& live);
  void observe(const CachedJob& job, JobMemory& memory, const Live& live,
               reconciler::JobView& view);
  // job_outage.cc: how many holders an outage of the API server lost together with this one; zero:
  // none.
  int lost_together(const CachedJob& job, const CachedHeartbeat& lease);
  const reconciler::HolderCount& count_holders();
  HeartbeatPtr current_lease(const CachedJob& job, const Live& live);
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Random& random_;
  Log log_;
  Telemetry& telemetry_;
  Config config_;
  JobCensus census_;
  cache::Informer jobs_;
  cache::Informer pods_;
  NodeMonitor nodes_;
  HeartbeatMonitor heartbeats_;
  JobWindows job_windows_;
  WindowKeeper windows_;
  Membership membership_;
  NamespaceReadings readings_;
  Executor executor_;
  ReconcilePool pool_;
  Creations creations_;
  std::unordered_map<std::string, std::shared_ptr<JobMemory>> memory_;
  std::unordered_set<std::string> held_;
  std::unordered_set<std::shared_ptr<JobMemory>> creating_;  // jobs with a creation in progress
  struct Waiter {
    std::string namespace_;
    std::shared_ptr<JobMemory> memory;
    std::function<void(Unit)> shown;
    TimerId timer = 0;
  };
  std::list<Waiter> waiters_;
  std::vector<int> in_flight_;  // reconciles, by shard
  std::set<int> gained_;        // shards whose jobs must still be queued
  std::uint64_t time_travels_ = 0;
  std::uint64_t reconciles_ = 0;  // names each one in the log
  std::unordered_map<const cache::Informer*, std::uint64_t> travelled_;
  reconciler::HolderCount holders_;
  std::optional<SteadyTime> holders_counted_;
  TimerId resync_timer_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  bool stopped_hard_ = false;  // all waits are cancelled
  int to_end_ = 0;             // of the pool and the creations, when it stops
  TimerId grace_timer_ = 0;
  TimerId hand_over_timer_ = 0;
  std::function<void()> stopped_;
};

}  // namespace holdfast::controller
