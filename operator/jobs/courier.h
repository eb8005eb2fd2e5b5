// What the controller of jobs knows of notifications (docs/notifications.md). It knows the targets
// of the operator's configuration, and how the deliveries of a job's outbox went. Loop only.
// operator/notify implements it.
#pragma once

#include <string>

#include "operator/codecs/job_codec.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

class Courier {
 public:
  virtual ~Courier() = default;
  // The targets of the job and of its outbox, and what became of the deliveries so far.
  virtual reconciler::NotifyView of(const codecs::CachedJob& job) const = 0;
  // This replica holds the job, and this is its outbox on record: delivers what is in it, and drops
  // what is not any more. The job is queued when a delivery changes what of() says.
  virtual void deliver(const codecs::CachedJob& job) = 0;
  // The job is gone, or another replica's. `key` is namespace/name.
  virtual void forget(const std::string& key) = 0;
};

}  // namespace holdfast::jobs
