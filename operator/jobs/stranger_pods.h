// Pods of this replica's shards that its jobs do not lead to:
//
// - They name a job, but belong to a deleted job of the same name. Nobody else decides about them any
//   more, so they are released from our finalizer.
// - Their job has another shard than their label says: its status was edited while their creation
//   was on its way, or a user changed the label. That shard's holder may not see them, so they get
//   its label. Then it does with them what is right.
//
// Which of the two, only a live read says. Loop only.
#pragma once

#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/job_caches.h"
#include "operator/membership/membership.h"

namespace holdfast::jobs {

class StrangerPods {
 public:
  StrangerPods(Loop& loop, kube::Client& client, const JobCaches& caches,
               membership::Membership& membership, Executor& executor)
      : loop_(loop),
        client_(client),
        caches_(caches),
        membership_(membership),
        executor_(executor) {}

  // Those with this job's key. `cached`: the job, if the cache has it.
  Task<Result<>> settle(std::string key, codecs::JobPtr cached);

 private:
  std::string due_label(const codecs::CachedPod& pod, const codecs::CachedJob& job) const;
  // The job of this key now, read live; null: no such job.
  Task<Result<codecs::JobPtr>> read(std::string key);
  Task<Result<>> settle_all(std::string namespace_, std::vector<codecs::PodPtr> strangers,
                            codecs::JobPtr job);
  Task<Result<>> settle_pod(codecs::PodPtr pod, codecs::JobPtr job);

  Loop& loop_;
  kube::Client& client_;
  const JobCaches& caches_;
  membership::Membership& membership_;
  Executor& executor_;
};

}  // namespace holdfast::jobs
