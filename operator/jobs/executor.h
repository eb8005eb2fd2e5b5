// Performs the writes of a decision, one by one, and stops at the first that fails. A pod's
// creation is only begun there: nothing waits for it. What it learns (versions written, refusals)
// goes into the job's memory. Before each write it asks whether the job is still this replica's,
// and no request is under way for longer than that is sure. A creation may take a minute: whoever
// has begun it cancels it when the shard is lost. Loop only.
#pragma once

#include <functional>
#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/jobs/events.h"
#include "operator/jobs/job_codec.h"
#include "operator/jobs/job_memory.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/ownership.h"
#include "reconciler/decide.h"

namespace holdfast::controller {

class Executor {
 public:
  Executor(Loop& loop, kube::Client& client, const Ownership& ownership, Telemetry& telemetry,
           EventSink& events, std::string agent_image);

  struct Outcome {
    // A write was refused in a way that changes what should happen: decide again at once.
    bool decide_again = false;
    // A write failed that the others did not wait for: try again.
    std::optional<Error> later{};
  };
  // `memory` must stay valid; the job and its template are the caller's. `begin_creation` lets
  // create_pod() run by itself.
  using BeginCreation = std::function<void(const reconciler::CreatePod& write)>;
  Task<Result<Outcome>> perform(const CachedJob& job, Ownership::Claim claim,
                                const reconciler::Decision& decision, JobMemory& memory, Log log,
                                BeginCreation begin_creation);

  // A refusal is in the memory then, and to be put on record: decide_again.
  Task<Result<Outcome>> create_pod(const CachedJob& job, Ownership::Claim claim,
                                   const reconciler::CreatePod& write, JobMemory& memory, Log log);

  // The attempt's pod exists, whoever has told: the answer to its creation, or the watch before it.
  void pod_exists(std::int64_t attempt, const std::string& uid, JobMemory& memory);

  // Takes our finalizer off a pod; a pod that is gone or another one by now is fine.
  Task<Status> release_pod(std::string namespace_, std::string name, std::string uid,
                           Ownership::Claim claim, JobMemory* memory);

 private:
  // What all writes of one decision share.
  struct Setting {
    const CachedJob& job;
    const Ownership::Claim& claim;
    JobMemory& memory;
    const Log& log;
    const BeginCreation& begin_creation;
  };
  // One for each kind of write: a kind without one does not compile.
  Task<Result<Outcome>> apply(const reconciler::WriteStatus& write, const Setting& setting);
  Task<Result<std::string>> read_shared_metadata(const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::CreatePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::DeletePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::ReleasePod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::RelabelPod& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::WriteLease& write, const Setting& setting);
  Task<Result<Outcome>> apply(const reconciler::DeleteJob& write, const Setting& setting);

  Status may_write(const Ownership::Claim& claim) const;
  kube::CallOptions within_time() const;
  kube::CallOptions for_its_version() const;
  kube::CallOptions for_creation(std::int64_t attempt, const JobMemory& memory) const;

  // executor_status.cc
  void tell(const reconciler::WriteStatus& write, const Setting& setting);

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
  // Whether a deletion that failed like this holds up nothing any more.
  bool may_go_on_without(const Error& error, const JobMemory& memory) const;

  // executor_lease.cc
  Task<Status> send_lease(const reconciler::WriteLease& write, const Setting& setting);
  Task<Status> on_lease_exists(const reconciler::WriteLease& write, const Setting& setting);

  Loop& loop_;
  kube::Client& client_;
  const Ownership& ownership_;
  Telemetry& telemetry_;
  EventSink& events_;
  const std::string agent_image_;
};

}  // namespace holdfast::controller
