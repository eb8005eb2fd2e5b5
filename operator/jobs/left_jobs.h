// Jobs that this replica does not watch any more. Most are over: they are settled. The shard of a few
// was corrected. The watch says of such a job that it is deleted, with what it had before. That
// counts for nothing:
//
//   our own write has this version    The job is settled. It stays in the cache as we wrote it, until
//                                     it is at rest: its pods go, and its time to live is noted.
//   else                              It is read. Until then it stays as it was, and nothing is
//                                     decided about it. One of another replica's shard leaves the
//                                     cache, and one that is gone too. But a queue or a pool of
//                                     ours goes on to count its job: that is read again until its
//                                     status says the right shard.
//
// A job whose shard this replica had to correct for another one leaves at once.
//
// After a restart the cache lacks it. A pod that lives or has our finalizer then leads back to it,
// and so does a Lease: look_for(). A batch/v1 Job reads its DurableJob itself.
//
// The namespaces take turns with their reads, as with reconciles (client/controller/work_queue.h).
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "client/controller/reconcile_pool.h"
#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/job_codec.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_memories.h"

namespace holdfast::jobs {

class LeftJobs {
 public:
  // Reads of one namespace at the same time. In all there are twice as many: see FairShare.
  static constexpr int kAtOnce = 8;
  // From a read that failed, or has shown a wrong shard, to the next. All failed reads together are
  // repeated kRetriesPerSecond times a second, and namespaces have equal parts of these. But each one
  // is repeated within kLongestRetry.
  static constexpr std::chrono::seconds kRetry{1};
  static constexpr double kRetriesPerSecond = 100;
  static constexpr std::chrono::seconds kLongestRetry{30};

  // `comes_back` gets a job that was settled before, and is in the cache again. `read`: of a job that
  // is in the cache, once is_sought() is false. `roles`: the operator has a Role in each
  // namespace, and loses it when the namespace goes.
  LeftJobs(Loop& loop, kube::Client& client, Log log, const JobCaches& caches,
           const JobMemories& memories, bool roles,
           std::function<void(const codecs::CachedJob& job)> comes_back,
           std::function<void(const std::string& key)> read);
  ~LeftJobs() { stop(); }

  void stop();
  // Reads the job of this key. If it is there, the cache has it afterwards.
  void look_for(const std::string& key);
  // It is not read yet, or its shard is wrong. What the cache has of it may be older than what this
  // replica wrote.
  bool is_sought(const std::string& key) const { return sought_.contains(key); }
  // The write of the job's status that was under way has ended.
  void written(const std::string& key);
  // The job is at rest, or gone.
  void drop(const std::string& key) { caches_.jobs()->drop(key); }
  // Another replica has the shard: it looks at what leads back.
  void lost(int shard);

 private:
  kube::ObjectPtr leave(const codecs::JobPtr& job, std::uint64_t version);
  Task<controller::ReconcileResult> look(std::string key);
  Task<bool> is_gone(const Error& error, const std::string& namespace_);

  kube::Client& client_;
  const Log log_;
  const JobCaches& caches_;
  const JobMemories& memories_;
  const bool roles_;
  const std::function<void(const codecs::CachedJob&)> comes_back_;
  const std::function<void(const std::string&)> read_;
  // True: its next read has not begun. An answer under way may be older than what led here.
  std::map<std::string, bool> sought_;
  std::set<std::string> answerless_;  // left while a write of ours had no answer
  bool stopped_ = false;
  controller::ReconcilePool looks_;
};

}  // namespace holdfast::jobs
