#include "operator/jobs/pod_index.h"

#include <vector>

#include "client/cache/view.h"

namespace holdfast::jobs {

void add_pod_indexes(cache::Store& pods) {
  cache::add_index<codecs::CachedPod>(pods, kByJob, [](const codecs::CachedPod& pod) {
    const std::string key = look_key(pod);
    if (key.empty()) return std::vector<std::string>{};
    return std::vector<std::string>{codecs::is_settled(pod.pod) ? settled(key) : key};
  });
  cache::add_index<codecs::CachedPod>(pods, kByNode, [](const codecs::CachedPod& cached) {
    const reconciler::PodView& pod = cached.pod;
    return pod.node_name.empty() || pod.ended() ? std::vector<std::string>{}
                                                : std::vector<std::string>{pod.node_name};
  });
}

}  // namespace holdfast::jobs
