// The controllers of one replica, and what they share: caches, shards, and what the replica has
// seen of nodes and heartbeats. A runtime::Process has one. The simulator has one for each replica.
//
//   start: the caches list and watch. Once they are synced, the replica joins the others, and the
//          controllers work on the shards that it gets.
//   stop:  the controllers end their work, then the replica frees its shards, then the watches
//          close.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "operator/jobs/job_controller.h"
#include "operator/jobs/watched_shards.h"
#include "operator/lane/lane_controller.h"
#include "operator/membership/membership.h"
#include "operator/notify/notifier.h"
#include "operator/observe/guard.h"
#include "operator/observe/heartbeat_monitor.h"
#include "operator/observe/namespace_readings.h"
#include "operator/observe/node_monitor.h"
#include "operator/observe/window_keeper.h"
#include "operator/pools/pool_controller.h"
#include "operator/queues/queue_controller.h"
#include "operator/rescue/rescue_controller.h"
#include "operator/runtime/caches.h"
#include "operator/runtime/controllers.h"
#include "operator/runtime/time_travel.h"

namespace holdfast::runtime {

class Manager {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    jobs::Telemetry& telemetry;
    events::EventSink& events;
    notify::Poster& poster;
    const FileReader& files;
  };
  struct Config {
    std::vector<std::string> namespaces;  // empty: all
    membership::Membership::Config membership;
    jobs::JobController::Config jobs;
    notify::Targets targets;
    // batch/v1 Jobs that name Holdfast in spec.managedBy are run. `selector`: in namespaces with
    // these labels alone; empty: in all.
    struct BatchJobs {
      std::string selector;
    };
    std::optional<BatchJobs> batch_jobs = std::nullopt;
    // Other controllers' pods with the rescue label are freed. None: they are not even watched.
    std::optional<rescue::Config> rescue = std::nullopt;
    // Look for the guard (observe/guard.h). `version`: of this operator.
    struct Guard {
      bool required = false;
      std::string version;
    };
    std::optional<Guard> guard = std::nullopt;
    // The operator can never work here; the error says what to do.
    std::function<void(Error)> refuse = nullptr;
  };
  Manager(Dependencies dependencies, Config config,
          controller::ReconcilePool::Metrics metrics = {});

  void start();
  // The caches are synced, and the replica works or joins the others.
  bool synced() const { return controllers_.begun(); }
  // Stops cleanly, then calls `stopped`. Queued work is left to the next holders of the shards.
  void stop(std::function<void()> stopped);

  // The number of open watches. Per namespace that is watched by itself: jobs, pods, heartbeats,
  // queues, pools, workers' pods, workers' Leases. Others: nodes, node Leases, this installation's
  // Leases.
  static constexpr std::size_t kWatchesPerNamespace = 7;
  static constexpr std::size_t kOtherWatches = 3;
  // With Config::batch_jobs: of each namespace its Jobs; and the selected namespaces.
  static constexpr std::size_t kLaneWatchesPerNamespace = 1;
  static constexpr std::size_t kLaneOtherWatches = 1;
  // With Config::rescue: one for each of its namespaces, or one for all.

  // For probes: jobs, pods, nodes, node-leases, job-leases, leases. Without these no job is worked
  // on.
  std::vector<cache::Informer*> needed();
  // For metrics: also queues, and pools with their workers. If they cannot be read (an older CRD),
  // only jobs with queues or pools wait.
  std::vector<cache::Informer*> informers();
  membership::Membership& membership() { return membership_; }
  // Who owns what, and why nothing is done about the jobs of a shard that is held.
  membership::OwnershipReport ownership();
  jobs::JobController& jobs() { return job_controller_; }
  queues::QueueController& queues() { return queue_controller_; }
  pools::PoolController& pools() { return pool_controller_; }
  notify::Notifier& notifier() { return notifier_; }
  rescue::RescueController::Counts rescues() const {
    return rescue_ ? rescue_->controller.counts() : rescue::RescueController::Counts{};
  }
  // What is wrong with the guard; empty: nothing, or not known.
  std::string guard_fault() const { return observed_.guard ? observed_.guard->fault() : ""; }

 private:
  // Nodes, heartbeats and the guard, as this replica has seen them.
  struct Observed {
    Observed(const cache::Informer::Dependencies& shared, cache::Informer& pods,
             const std::vector<std::string>& namespaces,
             observe::HeartbeatMonitor::WorkedOn worked_on, std::unique_ptr<observe::Guard> guard);
    observe::NodeMonitor nodes;
    observe::HeartbeatMonitor heartbeats;
    observe::WindowKeeper windows;
    std::unique_ptr<observe::Guard> guard;  // null: nobody looks for it
  };
  // batch/v1 Jobs.
  struct Lane {
    std::unique_ptr<cache::Informer> jobs;
    std::unique_ptr<cache::Informer> namespaces;  // null: all namespaces
    std::unique_ptr<lane_controller::LaneController> controller;
  };
  // Other controllers' pods.
  struct Rescue {
    Rescue(const cache::Informer::Dependencies& shared, rescue::Config config,
           const Dependencies& deps, Observed& observed, membership::Membership& membership);
    cache::Informer pods;
    rescue::RescueController controller;
  };
  membership::Membership::Handlers membership_handlers(jobs::Telemetry& telemetry,
                                                       std::function<void(Error)> refuse);
  std::unique_ptr<observe::Guard> make_guard(const Dependencies& dependencies,
                                             const Config& config);
  std::vector<jobs::WatchedShards::Part> watched_parts();
  void look_at_held();
  reconciler::GuardView guard_view() const {
    return observed_.guard ? observed_.guard->view() : reconciler::GuardView{};
  }
  void make_lane(Dependencies& dependencies, const Config::BatchJobs& lane,
                 const std::vector<std::string>& namespaces);
  void begin();
  void refresh(std::function<void()> done);
  std::string unseen(Duration patience);
  void look_for_time_travel();
  void on_time_travel();

  Loop& loop_;
  Log log_;
  Caches caches_;
  Observed observed_;
  jobs::WatchedShards watched_shards_;
  membership::Membership membership_;
  observe::NamespaceReadings readings_;
  queues::QueueController queue_controller_;
  pools::PoolController pool_controller_;
  notify::Notifier notifier_;
  jobs::JobController job_controller_;
  std::unique_ptr<Lane> lane_;      // null: batch/v1 Jobs are none of our business
  std::unique_ptr<Rescue> rescue_;  // null: so are other controllers' pods
  Controllers controllers_;
  TimeTravel time_travel_;
};

}  // namespace holdfast::runtime
