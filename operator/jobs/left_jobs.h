// Jobs that are over, and that this replica does not watch any more: they are settled. The watch
// says of such a job that it is deleted, with what it had before. That counts for nothing:
//
//   our own write has this version    The job stays in the cache as we wrote it, until it is at
//                                     rest: its pods go, and its time to live is noted.
//   else                              It is read. Until then it stays as it was, and each write of
//                                     it conflicts.
//
// After a restart the cache lacks it. A pod that lives or has our finalizer then leads back to it,
// and so does a Lease: look_for().
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

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
  // Reads at the same time.
  static constexpr int kAtOnce = 16;
  // From a read that failed to the next.
  static constexpr std::chrono::seconds kRetry{1};

  // `comes_back` gets a job that was settled before, and is in the cache again.
  LeftJobs(Loop& loop, kube::Client& client, Log log, const JobCaches& caches,
           const JobMemories& memories,
           std::function<void(const codecs::CachedJob& job)> comes_back);
  ~LeftJobs() { stop(); }

  void stop();
  // Reads the job of this key. If it is there, the cache has it afterwards.
  void look_for(const std::string& key);
  // The write of the job's status that was under way has ended.
  void written(const std::string& key);
  // The job is at rest, or gone.
  void drop(const std::string& key) { caches_.jobs()->drop(key); }
  // Another replica has the shard: it looks at what leads back.
  void lost(int shard);

 private:
  kube::ObjectPtr leave(const codecs::JobPtr& job, std::uint64_t version);
  void next();
  void look_again();
  Task<void> look(std::string key);
  Task<bool> is_gone(const Error& error, const std::string& namespace_);

  Loop& loop_;
  kube::Client& client_;
  const Log log_;
  const JobCaches& caches_;
  const JobMemories& memories_;
  const std::function<void(const codecs::CachedJob&)> comes_back_;
  std::deque<std::string> line_;
  std::vector<std::string> unread_;  // to be read again after kRetry
  enum class Search { kWaits, kIsRead, kAgain };
  std::map<std::string, Search> sought_;  // in one of these, or being read; kAgain: once more
  std::set<std::string> answerless_;      // left while a write of ours had no answer
  int reading_ = 0;
  bool stopped_ = false;
  TimerId timer_ = 0;
};

}  // namespace holdfast::jobs
