#include "operator/jobs/left_jobs.h"

#include <algorithm>
#include <utility>

#include "client/kube/packed.h"
#include "operator/codecs/at_rest.h"
#include "operator/jobs/gone_namespace.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

using controller::ReconcileResult;

controller::ReconcilePool::Config reads() {
  controller::ReconcilePool::Config config;
  config.workers = LeftJobs::kAtOnce;
  config.queue.base_delay = config.queue.max_delay = LeftJobs::kRetry;
  config.queue.failures_per_second = LeftJobs::kRetriesPerSecond;
  return config;
}

ReconcileResult after_error(const Error& error) {
  ReconcileResult result;
  result.error = error;
  result.wake_after =
      std::max<Duration>(LeftJobs::kLongestRetry, error.retry_after.value_or(Duration::zero()));
  return result;
}

}  // namespace

LeftJobs::LeftJobs(Loop& loop, kube::Client& client, Log log, const JobCaches& caches,
                   const JobMemories& memories, bool roles,
                   std::function<void(const codecs::CachedJob& job)> comes_back,
                   std::function<void(const std::string& key)> read)
    : client_(client),
      log_(std::move(log)),
      caches_(caches),
      memories_(memories),
      roles_(roles),
      comes_back_(std::move(comes_back)),
      read_(std::move(read)),
      looks_({loop, log_}, reads(), [this](std::string key) { return look(std::move(key)); }) {
  looks_.start();
  caches_.jobs()->on_leave([this](const kube::ObjectPtr& stored, std::uint64_t version) {
    return leave(kube::as<codecs::CachedJob>(stored), version);
  });
}

void LeftJobs::stop() {
  stopped_ = true;
  sought_.clear();
  looks_.stop([] {});
}

kube::ObjectPtr LeftJobs::leave(const codecs::JobPtr& job, std::uint64_t version) {
  if (stopped_ || !caches_.counts_here(*job)) return nullptr;
  const JobMemories::Ptr memory = memories_.find(*job);
  const kube::ObjectPtr& left = memory ? memory->leaving.left : nullptr;
  if (left && (version == 0 || left->version == version)) return left;
  // The API server could not select before. What concerns the job leads back to it.
  if (version == 0 && job->job.status.settled) return nullptr;
  if (memory && memory->leaving.status_is_sent) {
    answerless_.insert(job->key());
  } else {
    look_for(job->key());
  }
  return job;
}

void LeftJobs::look_for(const std::string& key) {
  if (stopped_) return;
  const auto [sought, is_new] = sought_.try_emplace(key, true);
  if (!is_new && std::exchange(sought->second, true)) return;
  looks_.queue().add(key);
}

void LeftJobs::written(const std::string& key) {
  if (answerless_.erase(key) == 0) return;
  const JobMemories::Ptr memory = memories_.find(key);
  if (memory && memory->leaving.left) return caches_.jobs()->keep(memory->leaving.left);
  look_for(key);
}

void LeftJobs::lost(int shard) {
  std::vector<std::string> theirs;
  caches_.jobs().for_each([&](const codecs::JobPtr& job) {
    // One with a wrong shard counts for its queue or its pool.
    const bool is_theirs = caches_.shard_of(*job) == shard || !caches_.counts_here(*job);
    if (is_theirs && caches_.jobs()->is_kept(job->key())) theirs.push_back(job->key());
  });
  for (const std::string& key : theirs) caches_.jobs()->drop(key);
}

// A ClusterRole stays when a namespace goes: then a refusal says nothing of the namespace.
Task<bool> LeftJobs::is_gone(const Error& error, const std::string& namespace_) {
  if (error.code == ErrorCode::kNotFound) co_return true;
  if (error.code != ErrorCode::kForbidden || !roles_) co_return false;
  auto ask = is_of_gone_namespace(client_, error, namespace_);
  co_return co_await ask;
}

Task<ReconcileResult> LeftJobs::look(std::string key) {
  const auto sought = sought_.find(key);
  if (sought == sought_.end()) co_return ReconcileResult{};
  sought->second = false;
  const std::string ns = kube::namespace_of(key);
  const std::string name = key.substr(ns.size() + 1);
  auto get =
      client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name));
  const Result<JsonDocument> answer = co_await get;
  bool is_known = answer.ok();
  if (!answer) {
    auto ask = is_gone(answer.error(), ns);
    is_known = co_await ask;
  }
  if (stopped_) co_return ReconcileResult{};
  const codecs::JobPtr known = caches_.job(key);
  if (known && !caches_.counts_here(*known)) {
    sought_.erase(key);
    if (caches_.jobs()->is_kept(key)) caches_.jobs()->drop(key);
    co_return ReconcileResult{};
  }
  if (!is_known) {
    log_.debug("a job that has left the watch was not read",
               {{"job", key}, {"error", answer.error().message}});
    sought_.at(key) = true;
    co_return after_error(answer.error());
  }
  const kube::ObjectPtr read = answer ? codecs::decode_cached_job(*answer) : nullptr;
  const codecs::JobPtr job = kube::as<codecs::CachedJob>(kube::whole(read));
  const bool is_here = job && caches_.counts_here(*job);
  if (is_here && !caches_.holds_shard_of(*job)) {
    caches_.jobs()->keep(read);
    sought_.at(key) = true;
    co_return ReconcileResult{.error = {}, .wake_after = kRetry};
  }
  // Then the queue hands it out once more.
  if (sought_.at(key)) co_return ReconcileResult{};
  sought_.erase(key);
  if (known) read_(key);
  if (known && (!is_here || job->uid != known->uid)) caches_.jobs()->drop(key);
  // An unsettled one is the watch's.
  const bool is_left = job && (job->job.status.settled || caches_.jobs()->is_kept(key));
  if (!is_left || !is_here) co_return ReconcileResult{};
  if (!known && job->job.status.settled) comes_back_(*job);
  caches_.jobs()->keep(read);
  co_return ReconcileResult{};
}

}  // namespace holdfast::jobs
