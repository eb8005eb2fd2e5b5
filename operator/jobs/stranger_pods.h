// Pods that name a job but belong to a deleted job of the same name. Nobody else decides about them
// any more, so they are released from our finalizer. Loop only.
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

  // Those with this job's key whose shards are held here. `uid`: the cached job's, or empty.
  Task<Result<>> release(std::string key, std::string uid);

 private:
  // The UID of the job of this key now, read live; empty: no such job.
  Task<Result<std::string>> read_uid(std::string key);
  Task<Result<>> release_all(std::string namespace_, std::vector<codecs::PodPtr> strangers,
                             std::string live_uid);

  Loop& loop_;
  kube::Client& client_;
  const JobCaches& caches_;
  membership::Membership& membership_;
  Executor& executor_;
};

}  // namespace holdfast::jobs
