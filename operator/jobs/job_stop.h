// The steps of a clean stop of the controller of jobs:
// 1. Creations in progress are handed over, as when shards move. Slow ones are cancelled and put on
//    record, so that they cost no attempt. That may take kHandOverLimit; without creations it takes
//    kStopGrace at most.
// 2. No reconcile begins. Those in flight get kStopGrace before their requests are cancelled.
//
// Loop only.
#pragma once

#include <chrono>
#include <functional>

#include "client/controller/reconcile_pool.h"
#include "core/loop.h"
#include "operator/jobs/pod_creations.h"

namespace holdfast::jobs {

class JobStop {
 public:
  static constexpr std::chrono::seconds kHandOverLimit{5};
  static constexpr std::chrono::milliseconds kStopGrace{500};

  // `cancel` ends what is still in flight.
  JobStop(Loop& loop, controller::ReconcilePool& pool, PodCreations& creations,
          std::function<void()> cancel);
  ~JobStop();

  // `idle` runs after the last reconcile and creation.
  void begin(std::function<void()> idle);
  // A creation has begun, or one has ended and is on record.
  void on_creations();

 private:
  void end_work();
  void one_ended();

  Loop& loop_;
  controller::ReconcilePool& pool_;
  PodCreations& creations_;
  const std::function<void()> cancel_;
  std::function<void()> idle_;
  bool stopping_ = false;
  bool handed_over_ = false;  // nothing more is to be put on record before the stop
  int to_end_ = 0;            // of the pool and the creations
  TimerId limit_timer_ = 0;   // kHandOverLimit
  TimerId grace_timer_ = 0;   // kStopGrace
};

}  // namespace holdfast::jobs
