#include "operator/jobs/watched_shards.h"

#include <algorithm>

#include "client/kube/packed.h"
#include "client/kube/percent_encode.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {
namespace {

// Of a selector in a request's line.
constexpr std::size_t kMostBytes = 4096;

std::vector<std::string> others(const std::set<int>& selected, int shards) {
  std::vector<std::string> labels;
  for (int shard = 0; shard < shards; ++shard) {
    if (selected.count(shard) == 0) labels.push_back(reconciler::shard_label(shard, shards));
  }
  return labels;
}

}  // namespace

WatchedShards::WatchedShards(const Dependencies& dependencies, int shards,
                             const std::vector<std::string>& namespaces)
    : on_read_(dependencies.on_read),
      jobs_({dependencies.loop, dependencies.jobs,
             [shards](const std::set<int>& selected) { return job_selector(selected, shards); },
             [shards](const kube::ObjectPtr& object) {
               const auto job = kube::as<codecs::CachedJob>(kube::whole(object));
               return reconciler::labelled_shard(job->job.status.shard, shards);
             },
             [this](const auto& read, const auto& watched) { on_read(read, watched); }, nullptr},
            shards, namespaces),
      pods_({dependencies.loop, dependencies.pods,
             [shards](const std::set<int>& selected) { return pod_selector(selected, shards); },
             [shards](const kube::ObjectPtr& object) {
               const auto pod = kube::as<codecs::CachedPod>(kube::whole(object));
               return reconciler::labelled_shard(pod->pod.shard_label, shards);
             },
             [this](const auto& read, const auto& watched) { on_read(read, watched); },
             [drop = dependencies.on_drop_pod](const kube::ObjectPtr& object) {
               drop(*kube::as<codecs::CachedPod>(kube::whole(object)));
             }},
            shards, namespaces) {}

void WatchedShards::want(const std::set<int>& shards) {
  jobs_.want(shards);
  pods_.want(shards);
}

bool WatchedShards::read(int shard, const std::string& namespace_) const {
  return jobs_.read(shard, namespace_) && pods_.read(shard, namespace_);
}

bool WatchedShards::read(int shard) const { return jobs_.read(shard) && pods_.read(shard); }

bool WatchedShards::lists(const cache::Informer& informer) const {
  return (&informer == &jobs_.objects() && jobs_.lists()) ||
         (&informer == &pods_.objects() && pods_.lists());
}

// The last one of the two reports them.
void WatchedShards::on_read(const std::set<int>& shards, const std::string& watched) const {
  std::set<int> now_read;
  for (const int shard : shards) {
    if (read(shard, watched)) now_read.insert(shard);
  }
  if (!now_read.empty()) on_read_(now_read, watched);
}

cache::Selector job_selector(const std::set<int>& selected, int shards) {
  const std::string unsettled = "status.settled!=true";
  std::string fields = unsettled;
  for (const std::string& other : others(selected, shards)) fields += ",status.shard!=" + other;
  const bool is_short = kube::percent_encode(fields).size() <= kMostBytes;
  return {"", is_short ? fields : unsettled};
}

// `notin` also selects the pods without the label.
cache::Selector pod_selector(const std::set<int>& selected, int shards) {
  std::string labels;
  for (const std::string& other : others(selected, shards)) {
    labels += (labels.empty() ? "" : ",") + other;
  }
  const std::string ours = reconciler::kJobUidLabel;
  return {labels.empty() ? ours : ours + "," + reconciler::kShardLabel + " notin (" + labels + ")",
          ""};
}

}  // namespace holdfast::jobs
