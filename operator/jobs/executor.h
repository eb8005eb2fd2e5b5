// Performs the writes of a decision: the status first, then the writes of different runs side by
// side. Those of one run are performed one by one, and stop at the first failure. It only begins a
// pod's creation and does not wait for it. It records new versions and refusals in the job's
// memory. Before each write it checks that this replica still holds the job, and no request
// outlives the claim. A creation may take a minute, so the caller cancels it when the shard is
// lost. Each kind of object has a writer of its own. Loop only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/controller/fair_share.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/jobs/executor_creation.h"
#include "operator/jobs/executor_job.h"
#include "operator/jobs/executor_lease.h"
#include "operator/jobs/executor_pods.h"
#include "operator/jobs/executor_setting.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class Executor {
 public:
  Executor(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
           Telemetry& telemetry, events::EventSink& events, std::string agent_image);

  using Outcome = WriteOutcome;
  // The caller keeps `memory` and `job` alive. `begin_creation` runs create_pod() in the
  // background.
  using BeginCreation = std::function<void(const reconciler::CreatePod& write)>;
  Task<Result<Outcome>> perform(const codecs::CachedJob& job, membership::Ownership::Claim claim,
                                const reconciler::Decision& decision, JobMemory& memory, Log log,
                                BeginCreation begin_creation);

  // decide_again: the memory has a refusal, which must be recorded.
  Task<Result<Outcome>> create_pod(const codecs::CachedJob& job, membership::Ownership::Claim claim,
                                   const reconciler::CreatePod& write, JobMemory& memory, Log log);
  // The creation was cancelled before its turn came.
  Task<Result<Outcome>> give_up_pod(const codecs::CachedJob& job,
                                    membership::Ownership::Claim claim,
                                    const reconciler::CreatePod& write, JobMemory& memory, Log log);

  // The attempt's pod exists. The answer to its creation said so, or the watch before the answer.
  void pod_exists(const std::string& namespace_, std::int64_t attempt, const std::string& uid,
                  JobMemory& memory) {
    creator_.pod_exists(namespace_, attempt, uid, memory);
  }

  // Removes our finalizer from a pod. It is no error if the pod is gone or replaced.
  Task<Result<>> release_pod(std::string namespace_, std::string name, std::string uid,
                             membership::Ownership::Claim claim, JobMemory* memory) {
    return pods_.release(std::move(namespace_), std::move(name), std::move(uid), claim, memory);
  }

  // Gives a pod the labels that name its job. Likewise.
  Task<Result<>> relabel_pod(std::string namespace_, std::string name, std::string uid,
                             std::string job_name, std::string job_uid,
                             membership::Ownership::Claim claim) {
    return pods_.relabel(std::move(namespace_), std::move(name), std::move(uid),
                         std::move(job_name), std::move(job_uid), claim);
  }

  // Gives a pod to the holder of another shard, unless it has changed.
  Task<Result<>> give_pod_to_shard(codecs::PodPtr pod, std::string shard_label,
                                   membership::Ownership::Claim claim) {
    return pods_.give_to_shard(std::move(pod), std::move(shard_label), claim);
  }

  // Whether this namespace is being deleted: then it takes nothing new.
  Task<bool> namespace_goes(std::string namespace_);

  // What the requests for runs of one job share with those of other namespaces: see Channels. Live
  // looks use it too.
  controller::FairShare& channels() { return channels_; }

 private:
  // The writes of one run, in their order.
  using Chain = std::vector<const reconciler::Write*>;
  // Adds to `outcome` what the chain's writes ask for, and the first failure of all chains.
  struct Chains {
    Outcome outcome;
    std::optional<Error> failure;
  };
  Task<void> perform(Chain chain, const WriteSetting& setting, const BeginCreation& begin_creation,
                     Chains& all);
  Task<Result<Outcome>> perform(const reconciler::Write& write, const WriteSetting& setting,
                                const BeginCreation& begin_creation);
  // One overload for each kind of write; a missing overload does not compile.
  Task<Result<Outcome>> send(const reconciler::Write& write, const WriteSetting& setting,
                             const BeginCreation& begin_creation);
  void check_claim(const membership::Ownership::Claim& claim, const codecs::CachedJob& job) const;

  Loop& loop_;
  kube::Client& client_;
  const membership::Ownership& ownership_;
  JobWriter job_;
  PodCreator creator_;
  PodWriter pods_;
  LeaseWriter leases_;
  controller::FairShare channels_;
};

}  // namespace holdfast::jobs
