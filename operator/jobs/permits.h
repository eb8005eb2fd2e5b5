// What the controller of jobs knows of queues: whether a job is admitted, and that it asks to be.
// Loop only. operator/queues implements it.
#pragma once

#include "operator/codecs/job_codec.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

class Permits {
 public:
  virtual ~Permits() = default;
  // The job has a queue.
  virtual reconciler::PermitView of(const codecs::CachedJob& job) const = 0;
  // The job could start now if its queue admitted it; or it could not, or has no need.
  // `pod_may_come`: a request for one of its pods may still be applied, or its pod is not shown
  // yet.
  virtual void ask(const codecs::CachedJob& job, bool wants, bool pod_may_come) = 0;
};

}  // namespace holdfast::jobs
