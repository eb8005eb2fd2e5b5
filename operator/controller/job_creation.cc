// The creation of one job's pod, by itself: no worker waits for it.
#include "operator/controller/job_controller.h"

namespace holdfast::controller {

void JobController::begin_creation(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                                   std::shared_ptr<JobMemory> memory, Creations::Slot slot,
                                   const reconciler::CreatePod& write, const Log& log) {
  memory->creation = JobMemory::Creation{claim, keep_shard(claim.shard)};
  spawn(create(std::move(job), claim, std::move(memory), std::move(slot), write, log));
}

Task<void> JobController::create(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                                 std::shared_ptr<JobMemory> memory, Creations::Slot,
                                 reconciler::CreatePod write, Log log) {
  auto task = executor_.create_pod(*job, claim, write, *memory, log);
  const Result<Executor::Outcome> done = co_await task;
  if (done && done->decide_again) {
    memory->creation->under_way = false;  // a refusal goes on record first
  } else {
    memory->creation.reset();
  }
  pool_.queue().add(job->key());
}

std::optional<Ownership::Claim> JobController::claim_of(const CachedJob& job) const {
  if (const auto claim = membership_.claim(job.uid)) return claim;
  const auto memory = memory_.find(job.key());
  if (memory == memory_.end() || memory->second->uid != job.uid) return std::nullopt;
  const auto& creation = memory->second->creation;
  if (!creation || !membership_.holds(creation->claim)) return std::nullopt;
  return creation->claim;
}

}  // namespace holdfast::controller
