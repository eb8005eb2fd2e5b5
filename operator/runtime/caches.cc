#include "operator/runtime/caches.h"

#include "operator/codecs/at_rest.h"
#include "operator/pools/pool_codec.h"
#include "operator/pools/worker_leases.h"
#include "operator/pools/worker_pod.h"
#include "operator/queues/queue_codec.h"

namespace holdfast::runtime {

Caches::Caches(const cache::Informer::Dependencies& shared,
               const std::vector<std::string>& namespaces)
    : jobs(shared, codecs::job_kind(), namespaces),
      pods(shared, codecs::pod_kind(), namespaces),
      queues(shared, queues::queue_kind(), namespaces),
      worker_pools(shared, pools::pool_kind(), namespaces),
      worker_pods(shared, pools::worker_pod_kind(), namespaces),
      worker_leases(shared, pools::worker_lease_kind(), namespaces) {}

void Caches::start() {
  for (cache::Informer* informer :
       {&jobs, &pods, &queues, &worker_pools, &worker_pods, &worker_leases}) {
    informer->start();
  }
}

}  // namespace holdfast::runtime
