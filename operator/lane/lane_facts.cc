#include "operator/lane/lane_facts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/jobs/pod_index.h"
#include "reconciler/shards.h"

namespace holdfast::lane_controller {
namespace {

constexpr const char* kByUid = "lane-uid";      // of batch/v1 Jobs
constexpr const char* kByOwner = "lane-owner";  // of DurableJobs that run a Job

std::string in_namespace(const std::string& namespace_, const std::string& uid) {
  return namespace_ + "/" + uid;
}

}  // namespace

bool counts_as_ready(const codecs::PodPtr& cached) {
  if (!cached) return false;
  const reconciler::PodView& pod = cached->pod;
  return pod.ready && !pod.deletion && !pod.ended();
}

std::string lane_shard_key(const CachedBatchJob& job, const std::vector<codecs::JobPtr>& owned) {
  const auto first = std::min_element(
      owned.begin(), owned.end(),
      [](const codecs::JobPtr& a, const codecs::JobPtr& b) { return a->name < b->name; });
  if (first != owned.end()) return reconciler::shard_key((*first)->job);
  return job.has_queue ? job.namespace_ : job.uid;
}

bool leads_back(const CachedBatchJob& job, const codecs::CachedJob& durable, int shards) {
  const std::optional<lane::Record> record = job.job ? lane::record_of(*job.job) : std::nullopt;
  const int its_own = reconciler::shard_of(lane_shard_key(job, {}), shards);
  return record == lane::Record{durable.name, durable.uid} &&
         its_own == reconciler::shard_of(reconciler::shard_key(durable.job), shards);
}

bool any_runs(const std::vector<codecs::JobPtr>& owned) {
  return std::any_of(owned.begin(), owned.end(), [](const codecs::JobPtr& one) {
    return !is_terminal(one->job.status.phase) && !one->job.deleting;
  });
}

Duration shortest_pause(std::size_t bytes) {
  constexpr std::size_t kBytesPerSecond = std::size_t{128} * 1024;
  return std::max<Duration>(std::chrono::seconds(1),
                            std::chrono::milliseconds(bytes * 1000 / kBytesPerSecond));
}

LaneFacts::LaneFacts(Dependencies dependencies) : deps_(std::move(dependencies)) {
  deps_.batch_jobs.add_index(kByUid, [](const CachedBatchJob& job) {
    return job.ours ? std::vector<std::string>{in_namespace(job.namespace_, job.uid)}
                    : std::vector<std::string>{};
  });
  deps_.jobs.add_index(kByOwner, [](const codecs::CachedJob& job) {
    return job.source.empty() || job.owner_uid.empty()
               ? std::vector<std::string>{}
               : std::vector<std::string>{in_namespace(job.namespace_, job.owner_uid)};
  });
}

std::vector<codecs::JobPtr> LaneFacts::owned(const std::string& ns, const std::string& uid) const {
  return deps_.jobs.by_index(kByOwner, in_namespace(ns, uid));
}

std::vector<BatchJobPtr> LaneFacts::owners(const codecs::CachedJob& durable) const {
  return deps_.batch_jobs.by_index(kByUid, in_namespace(durable.namespace_, durable.owner_uid));
}

bool LaneFacts::holds_shard_of(const codecs::CachedJob& durable) const {
  return deps_.membership.holds(reconciler::shard_key(durable.job));
}

std::optional<std::int64_t> LaneFacts::ready_pods(const codecs::CachedJob& durable) const {
  const int shard = deps_.membership.shard_of(reconciler::shard_key(durable.job));
  if (!has_read(shard, durable.namespace_)) return std::nullopt;
  const std::vector<codecs::PodPtr> pods = deps_.pods.by_index(jobs::kByJob, durable.key());
  return std::count_if(pods.begin(), pods.end(), [&](const codecs::PodPtr& pod) {
    return pod->owner_uid == durable.uid && counts_as_ready(pod);
  });
}

bool LaneFacts::is_selected(const std::string& ns) const {
  return !deps_.namespaces || deps_.namespaces->store().get(ns) != nullptr;
}

}  // namespace holdfast::lane_controller
