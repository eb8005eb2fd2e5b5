// What this replica remembers of each job (job_memory.h), and how long a job waits until the caches
// show our own writes. Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "client/controller/own_writes.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_memory.h"

namespace holdfast::jobs {

class JobMemories {
 public:
  using Ptr = std::shared_ptr<JobMemory>;
  // `wake` gets the key of a waiting job once the caches show our own writes. `dropped` gets each
  // memory that is dropped. Its ended creations are forgotten.
  JobMemories(Loop& loop, const JobCaches& caches, controller::OwnWrites::Wake wake,
              std::function<void(const Ptr& memory)> dropped);

  // An empty one, if nothing is remembered of the job with this UID.
  Ptr remember(const codecs::CachedJob& job);
  // Null: nothing is remembered. For a job: of the same UID.
  Ptr find(const std::string& key) const;
  Ptr find(const codecs::CachedJob& job) const;

  // The job is at rest, or belongs to another replica. It is remembered until the caches show our
  // own writes. An intent of ours also stays, because it is still ours if the shard comes back
  // after a lapse.
  void forget(const std::string& key);
  // The job is gone.
  void drop(const std::string& key);

  // The caches do not show all of our own writes for the job yet.
  bool lags(const std::string& namespace_, const JobMemory& memory) const {
    return behind(namespace_, memory) != nullptr;
  }
  // How long the job must wait for that; zero: act. `wake` gets it sooner.
  Duration held(const std::string& key, JobMemory& memory);
  // Ends when the caches show them, or when it has waited long enough.
  Task<void> own_writes_shown(std::string namespace_, Ptr memory);
  void stop_waits() { own_writes_.stop(); }
  // A cache has advanced.
  void on_progress() { own_writes_.on_progress(); }
  // The versions of our own writes no longer count.
  void time_travelled();
  // The creations of all jobs let go of their shards.
  void release_shards();

 private:
  cache::Informer* behind(const std::string& namespace_, const JobMemory& memory) const;

  Loop& loop_;
  const JobCaches& caches_;
  const std::function<void(const Ptr&)> dropped_;
  std::unordered_map<std::string, Ptr> memories_;
  controller::OwnWrites own_writes_;
};

}  // namespace holdfast::jobs
