// The controller of DurableJobs: queue and memory around reconciler::decide(), on the caches and
// shards that runtime::Manager has for all controllers. It answers the manager about jobs, and
// joins these parts:
// - JobTriggers: from the watches' events to the keys of jobs.
// - JobReconciler: one reconcile of one job.
// - PodCreations: creates pods. No reconcile waits for it.
// - HeldShards, JobStop: the shards come and go, and the end.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/held_shards.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/job_memories.h"
#include "operator/jobs/job_neighbours.h"
#include "operator/jobs/job_reconciler.h"
#include "operator/jobs/job_silences.h"
#include "operator/jobs/job_stop.h"
#include "operator/jobs/job_triggers.h"
#include "operator/jobs/pod_creations.h"
#include "operator/jobs/pod_index.h"
#include "operator/jobs/stray_pods.h"
#include "operator/jobs/watched_shards.h"
#include "operator/membership/membership.h"
#include "operator/observe/heartbeat_monitor.h"
#include "operator/observe/namespace_readings.h"
#include "operator/observe/node_monitor.h"

namespace holdfast::jobs {

class JobController : public controller::Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    Telemetry& telemetry;
    events::EventSink& events;
    // Shared with other controllers. `jobs` and `pods` are of job_kind() and pod_kind().
    cache::View<codecs::CachedJob> jobs;
    cache::View<codecs::CachedPod> pods;
    observe::NodeMonitor& nodes;
    observe::HeartbeatMonitor& heartbeats;
    observe::WindowKeeper& windows;
    membership::Membership& membership;
    const observe::NamespaceReadings& readings;
    const WatchedShards& watched_shards;
    JobNeighbours neighbours;
  };
  struct Config {
    controller::ReconcilePool::Config pool;
    std::string agent_image;  // for jobs with `heartbeat`; empty: they wait for it
    Duration resync = std::chrono::minutes(30);
    std::vector<std::string> namespaces;  // that are watched; empty: all
  };
  JobController(const Dependencies& dependencies, const Config& config,
                controller::ReconcilePool::Metrics metrics = {});
  ~JobController() override;

  // The caches are synced: it works on the jobs of this replica's shards from now on.
  void begin() override;
  // Call it after Membership::take_no_more(). See JobStop. `idle` runs after the last reconcile and
  // creation.
  void stop(std::function<void()> idle) override;

  // The shard's jobs are due: it was gained, or kept although it should have been handed over.
  // Forgets earlier knowledge about them.
  void look_at_all(int shard) override;
  void lost(int shard);
  // The jobs of held shards that have not ended are due.
  void look_at_unfinished();
  // A shard will be handed over once its work in hand has ended.
  void hand_over_soon() { creations_.hand_over_soon(); }
  // A namespace was read later than the others; "" means all.
  void begin_namespace(const std::string& watched) { shards_.look_at_namespace(watched); }
  // The pods of these shards in this watched namespace were read; "" means all.
  void begin_shards(const std::set<int>& shards, const std::string& watched) {
    shards_.look_at_shards(shards, watched);
  }
  // The pod has left the cache, but is not deleted.
  void drop_pod(const codecs::CachedPod& pod) { silences_.gone(pod); }
  // A cache has advanced. Call it after time_travelled(), if both are due.
  void on_progress() override { memories_.on_progress(); }
  // The API server's data was set back: the versions of our own writes no longer count.
  void time_travelled() override { memories_.time_travelled(); }
  // The cache lacks the job, and somebody needs it: if it is there, it is in the cache soon.
  void look_for(const std::string& key) { reconciler_.finished().look_for(key); }
  // A known worker should renew the Lease.
  bool is_worked_on(const codecs::CachedHeartbeat& lease) const;

  controller::WorkQueue& queue() { return pool_.queue(); }
  // The jobs in the shards held here, by namespace and phase. The sum over all replicas is the
  // total.
  std::map<std::string, JobCensus::Phases> jobs_by_namespace() const;
  // How long the oldest `waiting.deadline` of such a job has passed without an action. Should stay
  // zero.
  Duration oldest_overdue() const;

 private:
  PodCreations::Dependencies creation_dependencies(membership::Membership& membership);
  StrayPods::Dependencies stray_dependencies(const Log& log,
                                             const membership::Membership& membership);

  Loop& loop_;
  kube::Client& client_;
  JobCaches caches_;
  JobCensus census_;
  JobSilences silences_;
  JobNeighbours neighbours_;
  Executor executor_;
  JobMemories memories_;
  PodCreations creations_;
  HeldShards shards_;
  JobReconciler reconciler_;
  controller::ReconcilePool pool_;
  StrayPods strays_;
  JobTriggers triggers_;
  JobStop stop_;
};

}  // namespace holdfast::jobs
