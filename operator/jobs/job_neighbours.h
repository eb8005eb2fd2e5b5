// What queues, pools, notifications, the lane and the guard have to say about a job before a
// decision, and what they hear of the decision. Loop only.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "operator/codecs/job_codec.h"
#include "operator/jobs/courier.h"
#include "operator/jobs/permits.h"
#include "operator/jobs/places.h"
#include "operator/observe/guard.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

// What the batch/v1 Job that a DurableJob runs says of it.
enum class Mirror {
  kDone,       // its end; or it runs none
  kLeadsBack,  // its name and UID. A replica that knows the Job alone finds the DurableJob
  kNothing,
};

class JobNeighbours {
 public:
  // `places`: null: there are no pools. `courier`: null: there are no targets. `guard`: null:
  // nobody looks for it, and none is required.
  using MirrorOf = std::function<Mirror(const codecs::CachedJob& job)>;
  JobNeighbours(Permits& permits, Places* places, Courier* courier, const observe::Guard* guard,
                MirrorOf mirror)
      : permits_(permits),
        places_(places),
        courier_(courier),
        guard_(guard),
        mirror_(std::move(mirror)) {}

  // The place of each attempt on a worker, as a pod.
  void show_slots(const codecs::CachedJob& job, reconciler::JobView& view) const;
  void observe(const codecs::CachedJob& job, reconciler::Observed& observed) const;

  Mirror mirror(const codecs::CachedJob& job) const { return mirror_(job); }

  // This replica holds the job: see Courier.
  void deliver(const codecs::CachedJob& job) const;
  // The job is gone, or another replica's.
  void forget(const std::string& key) const;
  // Before the decision's writes. `pod_may_come`: see Permits.
  void report(const codecs::CachedJob& job, const reconciler::Decision& decision,
              bool pod_may_come) const;
  // The API server has refused the decision's status for good.
  void not_written(const codecs::CachedJob& job) const;

 private:
  Permits& permits_;
  Places* const places_;
  Courier* const courier_;
  const observe::Guard* const guard_;
  const MirrorOf mirror_;
};

}  // namespace holdfast::jobs
