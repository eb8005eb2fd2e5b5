// The finished jobs of this replica's shards that nobody watches (left_jobs.h): whether they were
// edited, when their time to live ends, and how many there are. A walk reads all of them, in pages.
// It pauses between two pages, so that it takes a tenth of a core at most. A job whose time ends
// before the next walk has a timer. So the time to live of a finished job, and an edit of it, count
// within kBetweenWalks and a walk.
//
// It also says when a finished job may be settled (reconciler/job/settled.h).
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/client.h"
#include "client/kube/pages.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/job_codec.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_census.h"
#include "operator/jobs/job_neighbours.h"
#include "operator/jobs/left_jobs.h"
#include "operator/jobs/settle_line.h"
#include "reconciler/observed.h"

namespace holdfast::jobs {

class FinishedJobs {
 public:
  static constexpr std::chrono::seconds kFirstWalk{2};
  static constexpr std::chrono::minutes kBetweenWalks{10};
  // While the API server cannot select.
  static constexpr std::chrono::minutes kWhileUnselected{1};
  // Between two pages, and after a page that failed.
  static constexpr std::chrono::milliseconds kPause{150};
  static constexpr std::chrono::seconds kRetry{10};
  static constexpr int kPage = 500;
  // Of jobs with a timer. The walk finds the others again.
  static constexpr std::size_t kMostTimers = 100'000;

  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    const JobCaches& caches;
    const JobMemories& memories;
    const JobNeighbours& neighbours;
    // Reconcile the job with this key.
    std::function<void(const std::string& key)> look;
  };
  // `namespaces`: empty means all.
  FinishedJobs(Dependencies dependencies, std::vector<std::string> namespaces);
  ~FinishedJobs() { stop(); }

  void begin();
  void stop();
  // See LeftJobs.
  void look_for(const std::string& key) { left_.look_for(key); }
  bool is_sought(const std::string& key) const { return left_.is_sought(key); }
  void written(const std::string& key) { left_.written(key); }
  // The shard is ours, or no longer ours.
  void gained();
  void lost(int shard);
  // The job leaves the cache: nothing of it is left to do for now.
  void at_rest(const codecs::CachedJob& job);
  // Once, after at_rest(): the UID of the job that left. Then only what is new of it leads back.
  std::optional<std::string> take_left(const std::string& key);
  // We have deleted it.
  void deleted(const std::string& key) { left_.drop(key); }
  // Whether its next decision may settle it. If it has its turn, that decision takes it.
  reconciler::Settling settling(const codecs::CachedJob& job);
  // It has ended, and lacks `settled`: it gets a turn.
  void settle(const codecs::CachedJob& job) { settle_line_.add(job.key()); }
  // It is gone, or another replica's.
  void forget(const std::string& key) { settle_line_.take_turn(key); }
  // As the last walk has found them, and those that came since.
  std::map<std::string, JobCensus::Phases> counts() const;

 private:
  void walk_after(Duration delay);
  Task<void> walk_on();
  void next_namespace();
  void skip(const std::string& namespace_, bool is_gone);
  void walk_ends(Duration next);
  void uncount(const codecs::CachedJob& job);
  void see(const codecs::CachedJob& job);
  void arm();
  Time now() const { return deps_.client.server_clock().now(deps_.loop.now()); }

  Dependencies deps_;
  LeftJobs left_;
  SettleLine settle_line_;
  std::vector<std::string> namespaces_;
  // By shard, namespace and phase.
  using Counts = std::map<int, std::map<std::string, JobCensus::Phases>>;
  Counts counts_;
  struct Walk {
    std::string selector;  // of the shards that were held when it began
    Counts found{};
    std::size_t place = 0;  // in namespaces_
    kube::Pages pages{kPage};
  };
  std::optional<Walk> walk_;              // none: none is under way
  std::multimap<Time, std::string> due_;  // keys
  // UIDs by key. Each is reconciled at once, because it left.
  std::map<std::string, std::string> resting_;
  bool begun_ = false;
  bool stopped_ = false;
  TimerId walk_timer_ = 0;
  bool walks_soon_ = false;  // a shard has come since the last walk began
  TimerId due_timer_ = 0;
};

}  // namespace holdfast::jobs
