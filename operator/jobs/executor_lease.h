// The executor's writes of a job's heartbeat Leases. A refusal that only a human can fix delays
// nothing else. The caller has checked the claim. Loop only.
#pragma once

#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/events/events.h"
#include "operator/jobs/executor_setting.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

class LeaseWriter {
 public:
  LeaseWriter(Loop& loop, kube::Client& client, const membership::Ownership& ownership,
              events::EventSink& events)
      : loop_(loop), client_(client), ownership_(ownership), events_(events) {}

  Task<Result<WriteOutcome>> write(const reconciler::WriteLease& write,
                                   const WriteSetting& setting);
  Task<Result<WriteOutcome>> remove(const reconciler::DeleteLease& write,
                                    const WriteSetting& setting);

 private:
  Task<Result<>> send(const reconciler::WriteLease& write, const WriteSetting& setting);
  Task<Result<>> on_exists(const reconciler::WriteLease& write, const WriteSetting& setting);

  Loop& loop_;
  kube::Client& client_;
  const membership::Ownership& ownership_;
  events::EventSink& events_;
};

}  // namespace holdfast::jobs
