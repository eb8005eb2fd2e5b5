// Performs the writes of a decision: the status first, then the writes of different runs side by
// side. Those of one run are performed one by one, and stop at the first failure. It only begins a
// pod's creation and does not wait for it. It records new versions and refusals in the job's
// memory. Before each write it checks that this replica still holds the job, and no request
// outlives the claim. A creation may take a minute, so the caller cancels it when the shard is
// lost. Loop only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/controller/fair_share.h"
#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/job_codec.h"
#include "operator/events/events.h"
#include "operator/jobs/job_memory.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/ownership.h"
#include "reconciler/job/decide.h"

namespace holdfast::controller {

class Executor {
 public:
  Executor(Loop& loop, kube::Client& client, const Ownership& ownership, Telemetry& telemetry,
           EventSink& events, std::string agent_image);

  struct Outcome {
    // A refused write changes what should happen: decide again at once.
    bool decide_again = false;
    // A write failed, but the others went on without it: retry.
    std::optional<Error> later{};
  };
  // The caller keeps `memory` and `job` alive. `begin_creation` runs create_pod() in the
  // background.
  using BeginCreation = std::function<void(const reconciler::CreatePod& write)>;
  Task<Result<Outcome>> perform(const CachedJob& job, Ownership::Claim claim,
                                const reconciler::Decision& decision, JobMemory& memory, Log log,
                                BeginCreation begin_creation);

  // decide_again: the memory has a refusal, which must be recorded.
  Task<Result<Outcome>> create_pod(const CachedJob& job, Ownership::Claim claim,
                                   const reconciler::CreatePod& write, JobMemory& memory, Log log);
  // The creation was cancelled before its turn came.
  Task<Result<Outcome>> give_up_pod(const CachedJob& job, Ownership::Claim claim,
                                    const reconciler::CreatePod& write, JobMemory& memory, Log log);

  // The attempt's pod exists. The answer to its creation said so, or the watch before the answer.
  void pod_exists(const std::string& namespace_, std::int64_t attempt, const std::string& uid,
                  JobMemory& memory);

  // Removes our finalizer from a pod. It is no error if the pod is gone or replaced.
  Task<Status> release_pod(std::string namespace_, std::string name, std::string uid,
                           Ownership::Claim claim, JobMemory* memory);

  // Gives a pod the labels that name its job. Likewise.
  Task<Status> relabel_pod(std::string namespace_, std::string name, std::string uid,
                           std::string job_name, std::string job_uid, Ownership::Claim claim);

  // Whether this namespace is being deleted: then it takes nothing new.
  Task<bool> namespace_goes(std::string namespace_);

  // What the requests for runs of one job share with those of other namespaces: see Lanes. Live
  // looks use it too.
  FairShare& lanes() { return lanes_; }

 private:
  // The common input of all writes of one decision.
  struct Setting {
    const CachedJob& job;
    const Ownership::Claim& claim;
    JobMemory& memory;
    const Log& log;
    const BeginCreation& begin_creation;
  };
  // One overload for each kind of write; a missing overload does not compile.
  Task<Result<Outcome>> apply(const reconciler::WriteStatus& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::CreatePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::DeletePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::ReleasePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::RelabelPod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::WriteLease& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::DeleteLease& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::ReleaseJob& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::DeleteJob& write, const Setting& setting);

  // The writes of one run, in their order.
  using Chain = std::vector<const reconciler::Write*>;
  // Adds to `outcome` what the chain's writes ask for, and the first failure of all chains.
  struct Chains {
    Outcome outcome;
    std::optional<Error> failure;
  };
  Task<void> perform(Chain chain, const Setting& setting, Chains& all);
  Task<Result<Outcome>> perform(const reconciler::Write& write, const Setting& setting);

  // The job's texts, from the cache or live. kConflict: the job or its spec is another one by now.
  enum class Needs { kMetadata, kTemplateToo };
  Task<Result<JobTexts>> texts(const Setting& setting, Needs needs, kube::CallOptions options);
  // The same for a pod. Creations that are in flight together share one read.
  Task<Result<std::shared_ptr<const JobTexts>>> texts_for(const reconciler::CreatePod& write,
                                                          const Setting& setting);

  Status may_write(const Ownership::Claim& claim) const;
  void check_claim(const Ownership::Claim& claim, const CachedJob& job) const;
  kube::CallOptions within_time() const;
  kube::CallOptions for_its_version() const;
  kube::CallOptions for_creation(std::int64_t attempt, const JobMemory& memory) const;

  // executor_status.cc
  static bool needs_template(const reconciler::WriteStatus& write, const Setting& setting);
  static void keep_texts(JobTexts texts, const reconciler::WriteStatus& write, JobMemory& memory);
  void tell(const reconciler::WriteStatus& write, const Setting& setting);
  void record(const std::optional<reconciler::Event>& event, const Setting& setting);

  // executor_creation.cc
  Task<Result<Outcome>> post_pod(const reconciler::CreatePod& write, const Setting& setting);
  Task<Result<Outcome>> on_name_taken(const reconciler::CreatePod& write, const Setting& setting);
  Result<Outcome> on_given_up(const reconciler::CreatePod& write, const Setting& setting);
  Outcome refuse(const reconciler::CreatePod& write, reconciler::CreationRefusal::Kind kind,
                 const Error& error, const Setting& setting);
  void pod_created(std::int64_t attempt, const JsonView& pod, JobMemory& memory);
  Task<reconciler::CreationRefusal::Kind> refusal_kind(Error error, std::string body,
                                                       const Setting& setting);

  // executor_pods.cc
  Task<Status> delete_pod(const reconciler::DeletePod& write, const Setting& setting);
  Task<bool> shown_as_it_is(const reconciler::DeletePod& write, const Setting& setting);
  // True if the next attempt may start although this deletion failed.
  bool may_go_on_without(const std::string& pod, const Error& error, const JobMemory& memory) const;

  // executor_lease.cc
  Task<Status> send_lease(const reconciler::WriteLease& write, const Setting& setting);
  Task<Status> on_lease_exists(const reconciler::WriteLease& write, const Setting& setting);

  Loop& loop_;
  kube::Client& client_;
  const Ownership& ownership_;
  Telemetry& telemetry_;
  EventSink& events_;
  const std::string agent_image_;
  FairShare lanes_;
};

}  // namespace holdfast::controller
