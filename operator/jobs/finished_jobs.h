// The finished jobs of this replica's shards that nobody watches (left_jobs.h): when their time to
// live ends, and how many there are. A walk reads all of them, in pages, and pauses between two so
// that it takes a tenth of a core at most. A job whose time ends before the next walk has a timer.
// So the time to live of a finished job, and an edit of it, count within kBetweenWalks and a walk.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/job_codec.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/left_jobs.h"

namespace holdfast::jobs {

class FinishedJobs {
 public:
  static constexpr std::chrono::seconds kFirstWalk{60};
  static constexpr std::chrono::minutes kBetweenWalks{10};
  // Between two pages.
  static constexpr std::chrono::milliseconds kPause{150};
  static constexpr int kPage = 500;
  // Of jobs with a timer. The walk finds the others again.
  static constexpr std::size_t kMostTimers = 100'000;

  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    const JobCaches& caches;
    const JobMemories& memories;
  };
  // `namespaces`: empty means all.
  FinishedJobs(Dependencies dependencies, std::vector<std::string> namespaces);
  ~FinishedJobs() { stop(); }

  void begin();
  void stop();
  // See LeftJobs.
  void look_for(const std::string& key) { left_.look_for(key); }
  void written(const std::string& key) { left_.written(key); }
  // The shard is ours, or no longer ours.
  void gained();
  void lost(int shard);
  // The job leaves the cache: nothing of it is left to do for now.
  void at_rest(const codecs::CachedJob& job);
  // We have deleted it.
  void deleted(const std::string& key) { left_.drop(key); }
  // As the last walk has found them, and those that came since.
  std::map<std::string, JobCensus::Phases> counts() const;

 private:
  void walk_after(Duration delay);
  Task<void> walk_on();
  void walk_ends(bool has_all);
  void see(const codecs::CachedJob& job);
  void arm();
  Time now() const { return deps_.client.server_clock().now(deps_.loop.now()); }

  Dependencies deps_;
  LeftJobs left_;
  std::vector<std::string> namespaces_;
  // By shard, namespace and phase.
  using Counts = std::map<int, std::map<std::string, JobCensus::Phases>>;
  Counts counts_;
  // The walk under way: what it has found, and the page that is next.
  Counts walked_;
  std::size_t place_ = 0;  // in namespaces_
  std::string token_;
  std::multimap<Time, std::string> due_;  // keys
  bool begun_ = false;
  bool stopped_ = false;
  bool walking_ = false;
  TimerId walk_timer_ = 0;
  TimerId due_timer_ = 0;
};

}  // namespace holdfast::jobs
