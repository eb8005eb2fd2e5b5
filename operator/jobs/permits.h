// What the controller of jobs knows of queues. It hears whether a job is admitted, and asks for the
// admission. Loop only. operator/queues implements it.
#pragma once

#include "operator/codecs/job_codec.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

class Permits {
 public:
  virtual ~Permits() = default;
  // The job has a queue.
  virtual reconciler::PermitView of(const codecs::CachedJob& job) const = 0;
  // `wants`: the job could start now if its queue admitted it. `pod_may_come`: a request for a pod
  // of it may still be applied, or the cache does not show the pod yet.
  virtual void ask(const codecs::CachedJob& job, bool wants, bool pod_may_come) = 0;
};

}  // namespace holdfast::jobs
