// The executor's creations of pods: the meaning of refusals, and the owner of an existing name. A
// creation may take longer than the claim holds, so the caller cancels it when the shard is lost.
// Loop only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "client/kube/client.h"
#include "core/json_view.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/events/events.h"
#include "operator/jobs/executor_setting.h"
#include "operator/jobs/telemetry.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class PodCreator {
 public:
  PodCreator(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
             Telemetry& telemetry, events::EventSink& events, std::string agent_image)
      : loop_(loop),
        client_(client),
        ownership_(ownership),
        telemetry_(telemetry),
        events_(events),
        agent_image_(std::move(agent_image)) {}

  // decide_again: the memory has a refusal, which must be recorded. The caller has checked the
  // claim.
  Task<Result<WriteOutcome>> create(const reconciler::CreatePod& write,
                                    const WriteSetting& setting);
  // The creation was cancelled. An error: nothing must be recorded.
  Result<WriteOutcome> give_up(const reconciler::CreatePod& write, const WriteSetting& setting);

  // The attempt's pod exists. The answer to its creation said so, or the watch before the answer.
  void pod_exists(const std::string& namespace_, std::int64_t attempt, const std::string& uid,
                  JobMemory& memory);

 private:
  Task<Result<WriteOutcome>> on_name_taken(const reconciler::CreatePod& write,
                                           const WriteSetting& setting);
  WriteOutcome refuse(const reconciler::CreatePod& write, reconciler::CreationRefusal::Kind kind,
                      const Error& error, const WriteSetting& setting);
  void pod_created(std::int64_t attempt, const JsonView& pod, JobMemory& memory);
  Task<reconciler::CreationRefusal::Kind> refusal_kind(Error error, std::string body,
                                                       const WriteSetting& setting);
  kube::CallOptions options_for(std::int64_t attempt, const JobMemory& memory) const;

  Loop& loop_;
  kube::Client& client_;
  const membership::Ownership& ownership_;
  Telemetry& telemetry_;
  events::EventSink& events_;
  const std::string agent_image_;
};

}  // namespace holdfast::jobs
