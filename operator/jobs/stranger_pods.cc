#include "operator/jobs/stranger_pods.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/side_by_side.h"
#include "operator/jobs/channels.h"
#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"

namespace holdfast::jobs {

Task<Result<>> StrangerPods::release(std::string key, std::string uid) {
  std::vector<codecs::PodPtr> strangers;
  for (const codecs::PodPtr& pod : caches_.pods().by_index(kByJob, key)) {
    if (!pod->pod.has_finalizer || pod->names(uid)) continue;
    const int shard = caches_.shard_of(*pod);
    // Before that the job of each pod seems to be missing.
    if (!caches_.has_read(shard, pod->namespace_)) continue;
    if (membership_.claim_shard(shard)) strangers.push_back(pod);
  }
  if (strangers.empty()) co_return Unit{};
  // The cache of jobs may be behind the cache of pods: only a live read says that a job is gone.
  auto read = read_uid(key);
  const Result<std::string> live_uid = co_await read;
  if (!live_uid) co_return live_uid.error();
  auto task = release_all(namespace_of(key), std::move(strangers), *live_uid);
  co_return co_await task;
}

Task<Result<std::string>> StrangerPods::read_uid(std::string key) {
  const std::string ns = namespace_of(key);
  const std::string name = key.substr(ns.size() + 1);
  if (name.empty()) co_return std::string();
  auto get =
      client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return answer ? string_at(at(*answer, "metadata"), "uid") : "";
}

Task<Result<>> StrangerPods::release_all(std::string ns, std::vector<codecs::PodPtr> strangers,
                                         std::string live_uid) {
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> releases;
  releases.reserve(strangers.size());
  for (const codecs::PodPtr& pod : strangers) {
    releases.emplace_back([this, &ns, &live_uid, &pod, &failure]() -> Task<void> {
      const auto claim = membership_.claim_shard(caches_.shard_of(*pod));
      if (failure || !claim || pod->names(live_uid)) co_return;
      const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
      auto task = executor_.release_pod(ns, pod->name, pod->uid, *claim, nullptr);
      const Result<> released = co_await task;
      if (!released) failure = released.error();
    });
  }
  const Channels channels(executor_.channels(), ns, releases.size());
  auto together = side_by_side(loop_, channels.count(), std::move(releases));
  co_await together;
  if (failure) co_return *failure;
  co_return Unit{};
}

}  // namespace holdfast::jobs
