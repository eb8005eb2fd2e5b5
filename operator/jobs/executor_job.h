// The executor's writes of the job itself. It writes the status with its Events and metrics,
// removes the finalizer, and deletes the job. The caller has checked the claim. Loop only.
#pragma once

#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/events/events.h"
#include "operator/jobs/executor_setting.h"
#include "operator/jobs/telemetry.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class JobWriter {
 public:
  JobWriter(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
            Telemetry& telemetry, events::EventSink& events)
      : loop_(loop),
        client_(client),
        ownership_(ownership),
        telemetry_(telemetry),
        events_(events) {}

  Task<Result<WriteOutcome>> write(const reconciler::WriteStatus& write,
                                   const WriteSetting& setting);
  Task<Result<WriteOutcome>> release(const WriteSetting& setting);
  Task<Result<WriteOutcome>> remove(const WriteSetting& setting);

 private:
  void report(const reconciler::WriteStatus& write, const WriteSetting& setting);
  void report_end(const reconciler::Ended& ended, const reconciler::Status& after,
                  const WriteSetting& setting);

  Loop& loop_;
  kube::Client& client_;
  const membership::Ownership& ownership_;
  Telemetry& telemetry_;
  events::EventSink& events_;
};

}  // namespace holdfast::jobs
