// The old pods of jobs with podReplacementPolicy Failed, as far as this replica can know. While one
// may live, or may still come, its job keeps its permit.
//
// A cache that shows no old pod may be older than the job. So the monitor notes the moment at which
// it first saw the job rest. It waits until the cache of pods is shown to be as new. A pod may also
// come later: a request to create it had no answer (ComingPods).
//
//   if (monitor.look(*job) == OldPods::kUnknown) ...   // look again: take_unsure(), renew()
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/cache/view.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/watched_shards.h"
#include "operator/membership/membership.h"
#include "operator/queues/cache_proof.h"
#include "operator/queues/coming_pods.h"
#include "operator/queues/queue_book.h"

namespace holdfast::queues {

class OldPodsMonitor {
 public:
  struct Dependencies {
    Loop& loop;
    const ServerClock& clock;
    cache::View<codecs::CachedJob> jobs;
    cache::View<codecs::CachedPod> pods;  // with the index kByJob
    const membership::Membership& membership;
    const jobs::WatchedShards& watched_shards;
    CacheProof& proof;
    // Nothing of the run's last attempt, which has ended, runs on its worker any more.
    std::function<bool(const codecs::CachedJob& job, const reconciler::Run& run)> has_left;
  };
  explicit OldPodsMonitor(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  OldPods look(const codecs::CachedJob& job);
  // The job is gone.
  void forget(const codecs::CachedJob& job);
  void time_travelled();

  // The controller of jobs knows that no pod comes. True: that is news.
  bool none_comes(const codecs::CachedJob& job) {
    return coming_.none_comes(job, deps_.loop.now());
  }

  // Jobs whose pods were unknown, if the cache has become newer since the last call.
  std::vector<codecs::JobPtr> take_unsure();
  bool is_unsure(const codecs::CachedJob& job) const;
  // Makes the cache of pods as new as the namespace's unsure jobs. Returns when to look again;
  // none: no job is unsure.
  std::optional<Duration> renew(const std::string& namespace_);

  // Jobs whose pods do not come any more.
  struct Freed {
    std::vector<codecs::JobPtr> jobs;
    std::optional<Duration> next;  // when to look again
  };
  Freed take_freed(const std::string& namespace_);

 private:
  bool any_slot_is_taken(const codecs::CachedJob& job) const;
  bool any_pod_lives(const codecs::CachedJob& job) const;
  bool is_as_new(const codecs::CachedJob& job);
  void forget_rest(const codecs::CachedJob& job);
  codecs::JobPtr queued(const std::string& key) const;

  Dependencies deps_;
  // When a job was first seen without a running attempt, by UID.
  std::unordered_map<std::string, cache::Moment> rested_;
  struct Unsure {
    cache::Moment looked_at = 0;                        // the cache was this new
    std::unordered_map<std::string, SteadyTime> since;  // by the job's key
  };
  std::unordered_map<std::string, Unsure> unsure_;  // by namespace
  ComingPods coming_;
};

}  // namespace holdfast::queues
