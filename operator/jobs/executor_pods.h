// The executor's writes to pods that exist: stop, release, relabel. Loop only.
#pragma once

#include <string>

#include "client/controller/writer.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/pod_codec.h"
#include "operator/events/events.h"
#include "operator/jobs/executor_setting.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class PodWriter {
 public:
  PodWriter(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
            events::EventSink& events)
      : loop_(loop),
        client_(client),
        ownership_(ownership),
        writer_(client, ownership),
        events_(events) {}

  Task<Result<WriteOutcome>> stop(const reconciler::DeletePod& write, const WriteSetting& setting);
  // True if the next attempt may start although this deletion failed.
  bool may_go_on_without(const std::string& pod, const Error& error, const JobMemory& memory) const;

  Task<Result<WriteOutcome>> release(const reconciler::ReleasePod& write,
                                     const WriteSetting& setting);
  // Removes our finalizer from a pod. It is no error if the pod is gone or replaced.
  Task<Result<>> release(std::string namespace_, std::string name, std::string uid,
                         membership::Ownership::Claim claim, JobMemory* memory);

  Task<Result<WriteOutcome>> relabel(const reconciler::RelabelPod& write,
                                     const WriteSetting& setting);
  // Gives a pod the labels that name its job. Likewise.
  Task<Result<>> relabel(std::string namespace_, std::string name, std::string uid,
                         std::string job_name, std::string job_uid,
                         membership::Ownership::Claim claim);
  // Gives a pod, as it is, to the holder of another shard. It is no error if it has changed.
  Task<Result<>> give_to_shard(codecs::PodPtr pod, std::string shard_label,
                               membership::Ownership::Claim claim);

 private:
  // `metadata`: what the patch names of the pod, with its labels. It is no error if the pod is gone
  // or another one, or has changed.
  Task<Result<>> write_labels(std::string path, Json metadata, membership::Ownership::Claim claim);
  Task<Result<>> delete_pod(const reconciler::DeletePod& write, const WriteSetting& setting);
  Task<bool> shown_as_it_is(const reconciler::DeletePod& write, const WriteSetting& setting);

  Loop& loop_;
  kube::Client& client_;
  const membership::Ownership& ownership_;
  controller::Writer writer_;
  events::EventSink& events_;
};

}  // namespace holdfast::jobs
