// The creation of one job's pod. No worker waits for it.
#include "operator/jobs/job_controller.h"

namespace holdfast::controller {
namespace {

// How long a shard's hand-over waits for creations. Nobody works on its other jobs meanwhile.
constexpr std::chrono::seconds kHandOverPatience{1};

}  // namespace

void JobController::begin_creation(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                                   std::shared_ptr<JobMemory> memory, Creations::Slot slot,
                                   const reconciler::CreatePod& write, const Log& log) {
  memory->creation = JobMemory::Creation{claim, membership_.keep(claim.shard)};
  creating_.insert(memory);
  if (membership_.is_draining(claim.shard)) hand_over_soon();
  spawn(create(std::move(job), claim, std::move(memory), std::move(slot), write, log));
}

Task<void> JobController::create(std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
                                 std::shared_ptr<JobMemory> memory, Creations::Slot,
                                 reconciler::CreatePod write, Log log) {
  auto task = executor_.create_pod(*job, claim, write, *memory, log);
  const Result<Executor::Outcome> done = co_await task;
  creating_.erase(memory);
  if (done && done->decide_again) {
    memory->creation->under_way = false;  // a refusal is recorded first
  } else {
    memory->creation.reset();
  }
  pool_.queue().add(job->key());
}

void JobController::cancel_creations(const Meant& is_meant, bool hands_over) {
  for (const std::shared_ptr<JobMemory>& memory : creating_) {
    if (!is_meant(memory->creation->claim.shard)) continue;
    memory->creation->handed_over = hands_over;
    client_.cancel(memory->creation->request);
  }
}

void JobController::hand_over_soon() {
  if (hand_over_timer_ != 0 || stopping_) return;
  hand_over_timer_ = loop_.call_after(kHandOverPatience, [this] {
    hand_over_timer_ = 0;
    cancel_creations([this](int shard) { return membership_.is_draining(shard); },
                     /*hands_over=*/true);
  });
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
