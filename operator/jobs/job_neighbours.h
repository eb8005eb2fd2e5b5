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

class JobNeighbours {
 public:
  // `places`: null: there are no pools. `courier`: null: there are no targets. `guard`: null:
  // nobody looks for it, and none is required. `is_mirrored`: the batch/v1 Job that it runs, if it
  // runs one, reports its end.
  using IsMirrored = std::function<bool(const codecs::CachedJob& job)>;
  JobNeighbours(Permits& permits, Places* places, Courier* courier, const observe::Guard* guard,
                IsMirrored is_mirrored)
      : permits_(permits),
        places_(places),
        courier_(courier),
        guard_(guard),
        is_mirrored_(std::move(is_mirrored)) {}

  // The place of each attempt on a worker, as a pod.
  void show_slots(const codecs::CachedJob& job, reconciler::JobView& view) const;
  void observe(const codecs::CachedJob& job, reconciler::Observed& observed) const;

  bool is_mirrored(const codecs::CachedJob& job) const { return is_mirrored_(job); }

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
  const IsMirrored is_mirrored_;
};

}  // namespace holdfast::jobs
