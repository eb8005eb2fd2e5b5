#include "operator/jobs/pod_index.h"

#include <vector>

#include "client/cache/view.h"

namespace holdfast::controller {

void add_pod_indexes(cache::Store& pods) {
  cache::add_index<CachedPod>(pods, kByJob, [](const CachedPod& pod) {
    const std::string key = look_key(pod);
    if (key.empty()) return std::vector<std::string>{};
    return std::vector<std::string>{is_settled(pod.pod) ? settled(key) : key};
  });
  cache::add_index<CachedPod>(pods, kByNode, [](const CachedPod& cached) {
    const reconciler::PodView& pod = cached.pod;
    return pod.node_name.empty() || pod.ended() ? std::vector<std::string>{}
                                                : std::vector<std::string>{pod.node_name};
  });
}

}  // namespace holdfast::controller
