// Performs the writes of a decision, one by one, and stops at the first that fails. What it learns
// (versions written, refusals) goes into the job's memory. Before each write it asks whether the
// job is still this replica's, and no request is under way for longer than that is sure. Loop only.
#pragma once

#include <string>

#include "operator/controller/events.h"
#include "operator/controller/job_codec.h"
#include "operator/controller/job_memory.h"
#include "operator/controller/ownership.h"
#include "operator/controller/telemetry.h"
#include "operator/core/log.h"
#include "operator/core/loop.h"
#include "operator/core/task.h"
#include "operator/kube/client.h"
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
  // `memory` must stay valid; the job and its template are the caller's.
  Task<Result<Outcome>> perform(const CachedJob& job, Ownership::Claim claim,
                                const reconciler::Decision& decision, JobMemory& memory, Log log);

  // Takes our finalizer off a pod; a pod that is gone or another one by now is fine.
  Task<Status> release_pod(std::string namespace_, std::string name, std::string uid,
                           Ownership::Claim claim, JobMemory* memory);

 private:
  Status may_write(const Ownership::Claim& claim) const;
  kube::CallOptions within_time() const;
  kube::CallOptions for_its_version() const;
  Task<Status> write_status(const CachedJob& job, const reconciler::WriteStatus& write,
                            JobMemory& memory, Log log);
  Task<Result<Outcome>> create_pod(const CachedJob& job, const reconciler::CreatePod& write,
                                   JobMemory& memory, Log log);
  Task<Result<Outcome>> on_name_taken(const CachedJob& job, const reconciler::CreatePod& write,
                                      JobMemory& memory, Log log);
  Outcome refuse(const CachedJob& job, const reconciler::CreatePod& write,
                 reconciler::CreationRefusal::Kind kind, const std::string& message,
                 JobMemory& memory, const Log& log);
  void pod_created(const CachedJob& job, std::int64_t attempt, const JsonView& pod,
                   JobMemory& memory);
  Task<Status> delete_pod(const CachedJob& job, const reconciler::DeletePod& write,
                          JobMemory& memory, Log log);
  Task<bool> shown_as_it_is(const CachedJob& job, const reconciler::DeletePod& write,
                            JobMemory& memory);
  // Whether a deletion that failed like this holds up nothing any more.
  bool may_go_on_without(const Error& error, const JobMemory& memory) const;
  Task<Status> relabel_pod(const CachedJob& job, const reconciler::RelabelPod& write,
                           JobMemory& memory);
  Task<Result<Outcome>> write_lease(const CachedJob& job, const reconciler::WriteLease& write,
                                    JobMemory& memory, Log log);
  Task<Status> send_lease(const CachedJob& job, const reconciler::WriteLease& write,
                          JobMemory& memory, Log log);
  Task<Status> on_lease_exists(const CachedJob& job, const reconciler::WriteLease& write,
                               JobMemory& memory);
  Task<Status> delete_job(const CachedJob& job);
  void tell(const CachedJob& job, const reconciler::WriteStatus& write, JobMemory& memory,
            const Log& log);

  Loop& loop_;
  kube::Client& client_;
  const Ownership& ownership_;
  Telemetry& telemetry_;
  EventSink& events_;
  const std::string agent_image_;
};

}  // namespace holdfast::controller
