#include "operator/jobs/stranger_pods.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/side_by_side.h"
#include "operator/jobs/channels.h"
#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {

Task<Result<>> StrangerPods::settle(std::string key, codecs::JobPtr cached) {
  std::vector<codecs::PodPtr> strangers;
  // Then its decisions see these pods side by side, and mend their labels.
  const bool is_here = cached && caches_.counts_here(*cached);
  for (const codecs::PodPtr& pod : caches_.pods().by_index(kByJob, key)) {
    const bool is_jobs = cached && pod->names(cached->uid);
    const bool is_strange =
        is_jobs ? !is_here && !due_label(*pod, *cached).empty() : pod->pod.has_finalizer;
    if (!is_strange) continue;
    const int shard = caches_.shard_of(*pod);
    // Before that the job of each pod seems to be missing.
    if (!caches_.has_read(shard, pod->namespace_)) continue;
    if (membership_.claim_shard(shard)) strangers.push_back(pod);
  }
  if (strangers.empty()) co_return Unit{};
  // The cache of jobs may be behind the cache of pods: only a live read says that a job is gone.
  auto get = read(key);
  const Result<codecs::JobPtr> job = co_await get;
  if (!job) co_return job.error();
  auto task = settle_all(namespace_of(key), std::move(strangers), *job);
  co_return co_await task;
}

std::string StrangerPods::due_label(const codecs::CachedPod& pod,
                                    const codecs::CachedJob& job) const {
  return reconciler::due_shard_label(job.job, pod.pod.shard_label, membership_.shards());
}

Task<Result<codecs::JobPtr>> StrangerPods::read(std::string key) {
  const std::string ns = namespace_of(key);
  const std::string name = key.substr(ns.size() + 1);
  if (name.empty()) co_return codecs::JobPtr();
  auto get =
      client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code == ErrorCode::kNotFound) co_return codecs::JobPtr();
  if (!answer) co_return answer.error();
  codecs::JobPtr job = codecs::decode_job(*answer);
  if (!job) co_return make_error(ErrorCode::kTransient, "no DurableJob is in the answer");
  co_return job;
}

Task<Result<>> StrangerPods::settle_all(std::string ns, std::vector<codecs::PodPtr> strangers,
                                        codecs::JobPtr job) {
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> tasks;
  tasks.reserve(strangers.size());
  for (const codecs::PodPtr& pod : strangers) {
    tasks.emplace_back([this, &job, &pod, &failure]() -> Task<void> {
      auto task = settle_pod(pod, job);
      const Result<> done = co_await task;
      if (!done && !failure) failure = done.error();
    });
  }
  const Channels channels(executor_.channels(), ns, tasks.size());
  auto together = side_by_side(loop_, channels.count(), std::move(tasks));
  co_await together;
  if (failure) co_return *failure;
  co_return Unit{};
}

Task<Result<>> StrangerPods::settle_pod(codecs::PodPtr pod, codecs::JobPtr job) {
  const auto claim = membership_.claim_shard(caches_.shard_of(*pod));
  const bool is_jobs = job && pod->names(job->uid);
  std::string label = is_jobs ? due_label(*pod, *job) : "";
  const bool is_due = is_jobs ? !label.empty() : pod->pod.has_finalizer;
  if (!claim || !is_due) co_return Unit{};
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  auto task = is_jobs
                  ? executor_.give_pod_to_shard(pod, std::move(label), *claim)
                  : executor_.release_pod(pod->namespace_, pod->name, pod->uid, *claim, nullptr);
  co_return co_await task;
}

}  // namespace holdfast::jobs
