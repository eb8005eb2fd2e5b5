// One reconcile of one job:
// 1. Wait until the caches show our own last writes.
// 2. Build the view, and decide. If a verdict needs live reads, make them and decide again.
// 3. Perform the writes.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/controller/reconcile_pool.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/finished_jobs.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_memories.h"
#include "operator/jobs/job_neighbours.h"
#include "operator/jobs/job_observer.h"
#include "operator/jobs/live_reads.h"
#include "operator/jobs/pod_creations.h"
#include "operator/jobs/stranger_pods.h"
#include "operator/observe/namespace_looks.h"

namespace holdfast::jobs {

class JobReconciler {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    const JobCaches& caches;
    membership::Membership& membership;
    observe::NodeMonitor& nodes;
    const JobSilences& silences;
    const HeldShards& shards;
    const JobNeighbours& neighbours;
    Executor& executor;
    JobMemories& memories;
    PodCreations& creations;
    // Reconcile the job with this key.
    std::function<void(const std::string& key)> look;
  };
  struct Config {
    Duration resync{0};  // all jobs are looked at this often
    // With its Role in the namespace, Kubernetes takes the operator's rights.
    bool may_lose_rights = false;
    std::vector<std::string> namespaces = {};  // that are watched; empty: all
  };
  JobReconciler(const Dependencies& dependencies, Config config);

  Task<controller::ReconcileResult> reconcile(std::string key);
  FinishedJobs& finished() { return finished_; }
  const FinishedJobs& finished() const { return finished_; }

 private:
  // A decision that needs no live read any more.
  struct Decided {
    reconciler::Decision decision;
    bool pod_may_come = false;    // see Permits
    std::optional<Error> unread;  // a live read that failed: others were made
  };

  // The right to act on the job. An open creation keeps the claim under which it began, as long as
  // the job has that shard.
  std::optional<membership::Ownership::Claim> claim_of(const codecs::CachedJob& job) const;
  // Another replica has it.
  void let_go(const codecs::CachedJob& job);
  Duration collects(const codecs::CachedJob& job, const JobMemory& memory) const;
  Task<controller::ReconcileResult> reconcile_claimed(std::string key, codecs::JobPtr job,
                                                      membership::Ownership::Claim claim,
                                                      PodCreations::Look& look);
  // None: a refusal must be recorded at once; decide again.
  Task<std::optional<controller::ReconcileResult>> reconcile_job(codecs::JobPtr job,
                                                                 membership::Ownership::Claim claim,
                                                                 JobMemories::Ptr memory);
  // An error: a live read failed, and nothing can be decided without it.
  Task<Result<Decided>> decide(const codecs::CachedJob& job, JobMemory& memory);
  bool leads_back(const std::string& key);
  void rest(const codecs::CachedJob& job, const reconciler::Decision& decision);
  void on_failure(const codecs::CachedJob& job, const Error& error, bool status_is_written,
                  const Log& log) const;
  controller::ReconcileResult result_of(const codecs::CachedJob& job, const Decided& decided,
                                        const Result<Executor::Outcome>& done) const;
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  const kube::Client& client_;
  Log log_;
  const Config config_;
  const JobCaches& caches_;
  membership::Membership& membership_;
  const JobNeighbours& neighbours_;
  Executor& executor_;
  JobMemories& memories_;
  PodCreations& creations_;
  FinishedJobs finished_;
  struct Looks {
    JobObserver observer;
    LiveReads live;
    observe::NamespaceLooks namespaces;
  };
  Looks looks_;
  StrangerPods strangers_;
  std::uint64_t reconciles_ = 0;  // names each one in the log
};

}  // namespace holdfast::jobs
