#include "operator/pools/worker_facts.h"

namespace holdfast::controller {

reconciler::WorkerFacts worker_facts(const Worker& worker, const CachedPool* pool,
                                     reconciler::PodIs pod) {
  reconciler::WorkerFacts facts;
  facts.pod = pod;
  facts.out_of_memory = worker.pod && worker.pod->worker.out_of_memory;
  facts.has_pool = pool && !pool->deleting && (!worker.pod || worker.pod->owner_uid == pool->uid);
  facts.has_work = worker.work != nullptr;
  facts.duration = worker.duration();
  facts.has_lease = worker.lease != nullptr;
  facts.is_needed = facts.has_lease;
  if (!worker.lease) return facts;
  const CachedWorkerLease& lease = *worker.lease;
  facts.is = lease.refused.empty() ? lease.is() : reconciler::WorkerIs::kLive;
  // What is not understood matters no more once the worker is revoked.
  const bool is_live = facts.is == reconciler::WorkerIs::kLive;
  const bool work_is_clean =
      !worker.work || (worker.work->refused.empty() && worker.work->error.empty());
  facts.is_ours = lease.refused.empty() && (!is_live || (lease.error.empty() && work_is_clean));
  facts.renewed = lease.renewed.has_value();
  facts.is_marked = !lease.report.life.empty();
  return facts;
}

}  // namespace holdfast::controller
