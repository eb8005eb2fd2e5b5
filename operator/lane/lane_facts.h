// What the caches show of the batch/v1 Jobs that Holdfast runs, of their DurableJobs and of their
// pods. A UID in an ownerReference is only a text: an owner is in the namespace of what it owns.
//
// The functions are pure. LaneFacts reads the caches and sends nothing. Loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "lane/decide.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/watched_shards.h"
#include "operator/lane/batch_job_codec.h"
#include "operator/membership/membership.h"

namespace holdfast::lane_controller {

// As batch/v1 counts. Null: there is no pod.
bool counts_as_ready(const codecs::PodPtr& pod);

// reconciler::shard_key() of the Job's DurableJob, also before that is made. `owned`: the
// DurableJobs that the Job owns.
std::string lane_shard_key(const CachedBatchJob& job, const std::vector<codecs::JobPtr>& owned);

// A replica that has the Job, and not the DurableJob that it runs, reads that one. It is the replica
// that has the DurableJob's shard, one of `shards`.
bool leads_back(const CachedBatchJob& job, const codecs::CachedJob& durable, int shards);

// One of these DurableJobs has not ended, and is not being deleted.
bool any_runs(const std::vector<codecs::JobPtr>& owned);

// The pause between two writes of a Job's status that only count ready pods. Until it compacts,
// etcd keeps each version of the Job. `bytes`: of the Job as JSON.
Duration shortest_pause(std::size_t bytes);

class LaneFacts {
 public:
  struct Dependencies {
    // Of job_kind() and batch_job_kind().
    cache::View<codecs::CachedJob> jobs;
    cache::View<CachedBatchJob> batch_jobs;
    // Of pod_kind(), and which of them are read.
    cache::View<codecs::CachedPod> pods;
    const jobs::WatchedShards& watched_shards;
    // Of selected_namespace_kind(); null: all namespaces.
    cache::Informer* namespaces;
    const membership::Membership& membership;
  };
  // Adds indexes to the caches.
  explicit LaneFacts(Dependencies dependencies);

  // The DurableJobs that this Job owns, and the other way round.
  std::vector<codecs::JobPtr> owned(const std::string& namespace_, const std::string& uid) const;
  std::vector<BatchJobPtr> owners(const codecs::CachedJob& durable) const;

  // False: the Job has finished, and no DurableJob of it runs.
  bool has_work(const CachedBatchJob& job) const {
    return !job.finished || any_runs(owned(job.namespace_, job.uid));
  }
  std::string shard_key(const CachedBatchJob& job) const {
    return lane_shard_key(job, owned(job.namespace_, job.uid));
  }
  int shard_of(const CachedBatchJob& job) const {
    return deps_.membership.shard_of(shard_key(job));
  }
  bool holds_shard_of(const codecs::CachedJob& durable) const;
  // The DurableJobs of this shard are in the cache, and their pods.
  bool has_read(int shard, const std::string& namespace_) const {
    return deps_.watched_shards.read(shard, namespace_);
  }
  bool leads_back(const CachedBatchJob& job, const codecs::CachedJob& durable) const {
    return lane_controller::leads_back(job, durable, deps_.membership.shards());
  }
  // Pods of this DurableJob; none: they are not all in the cache.
  std::optional<std::int64_t> ready_pods(const codecs::CachedJob& durable) const;
  bool is_selected(const std::string& namespace_) const;
  // The version of DurableJobs that the cache shows of the namespace.
  std::uint64_t durable_version(const std::string& namespace_) const {
    return deps_.jobs->version(namespace_);
  }

 private:
  Dependencies deps_;
};

}  // namespace holdfast::lane_controller
