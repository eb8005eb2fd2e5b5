// The creations of jobs' pods. No worker waits for them.
#include <algorithm>

#include "operator/jobs/job_controller.h"

namespace holdfast::controller {
namespace {

// How long a shard's hand-over waits for creations. Nobody works on its other jobs meanwhile.
constexpr std::chrono::seconds kHandOverPatience{1};

}  // namespace

// True if the cache shows that the attempt has ended, or that its job is gone.
bool JobController::is_over(const CachedJob& job, std::int64_t attempt) const {
  const auto now = jobs_.get(job.key());
  if (!now || now->uid != job.uid || now->job.deleting) return true;
  const auto& runs = now->job.status.runs;
  return now->job.status.attempt >= attempt &&
         std::none_of(runs.begin(), runs.end(), [&](const reconciler::Run& run) {
           return run.open() && run.attempt == attempt;
         });
}

void JobController::withdraw_creations(const reconciler::Status& next, JobMemory& memory) {
  for (auto& [number, attempt] : memory.attempts) {
    if (!attempt.creating() || !attempt.creation->ticket || number > next.attempt) continue;
    const bool goes_on = std::any_of(
        next.runs.begin(), next.runs.end(),
        [number = number](const auto& run) { return run.open() && run.attempt == number; });
    if (!goes_on) creations_.withdraw(*attempt.creation->ticket);
  }
}

void JobController::begin_creation(JobPtr job, Ownership::Claim claim,
                                   std::shared_ptr<JobMemory> memory, Creations::Slot turn,
                                   const reconciler::CreatePod& write, const Log& log) {
  memory->attempts[write.attempt].creation = Creation{claim, membership_.keep(claim.shard)};
  creating_.insert(memory);
  if (hands_over(claim.shard)) hand_over_soon();
  if (stopping_) end_when_handed_over();
  spawn(create(std::move(job), claim, std::move(memory), std::move(turn), write, log));
}

Task<void> JobController::create(JobPtr job, Ownership::Claim claim,
                                 std::shared_ptr<JobMemory> memory, Creations::Slot slot,
                                 reconciler::CreatePod write, Log log) {
  const std::string key = job->key();
  Creation& creation = *memory->attempts.at(write.attempt).creation;
  if (!slot && creations_.admits(key)) slot = creations_.take(key);
  if (!slot) {
    Callback<Creations::Slot> turn([&](Callback<Creations::Slot>::Done done) {
      creation.ticket = creations_.queue(key, std::move(done));
    });
    slot = co_await turn;
    creation.ticket.reset();
  }
  bool must_be_recorded = false;  // a refusal
  // It may have waited for long. What ends the attempt does not wait for it.
  if (!slot || !is_over(*job, write.attempt)) {
    auto task = slot ? executor_.create_pod(*job, claim, write, *memory, log)
                     : executor_.give_up_pod(*job, claim, write, *memory, log);
    const Result<Executor::Outcome> done = co_await task;
    must_be_recorded = done && done->decide_again;
  }
  slot.reset();
  creation.under_way = false;
  creation.ended_at = loop_.now();
  // Of a job that is gone nobody makes a record.
  const auto known = memory_.find(key);
  const bool is_known = known != memory_.end() && known->second == memory;
  if (!must_be_recorded || !is_known) memory->attempts.at(write.attempt).creation.reset();
  settle_creations(memory);
  pool_.queue().add(key);
}

void JobController::cancel_creations(const Meant& is_meant, bool hands_over) {
  for (const std::shared_ptr<JobMemory>& memory : creating_) {
    for (auto& [number, attempt] : memory->attempts) {
      if (!attempt.creating() || !is_meant(attempt.creation->claim.shard)) continue;
      attempt.creation->handed_over = hands_over;
      if (attempt.creation->ticket) {
        creations_.withdraw(*attempt.creation->ticket);
      } else {
        client_.cancel(attempt.creation->request);
      }
    }
  }
}

void JobController::hand_over_soon() {
  if (hand_over_timer_ != 0 || handed_over_) return;
  hand_over_timer_ = loop_.call_after(kHandOverPatience, [this] {
    hand_over_timer_ = 0;
    cancel_creations([this](int shard) { return hands_over(shard); }, /*hands_over=*/true);
  });
}

bool JobController::hands_over(int shard) const {
  return stopping_ || membership_.is_draining(shard);
}

void JobController::settle_creations(const std::shared_ptr<JobMemory>& memory) {
  if (memory->has_creation()) return;
  creating_.erase(memory);
  if (stopping_) end_when_handed_over();
}

// The job is gone, or somebody else's.
void JobController::drop_memory(std::shared_ptr<JobMemory> memory) {
  memory->forget_ended_creations([](const Creation&) { return true; });
  settle_creations(memory);
}

std::optional<Ownership::Claim> JobController::claim_of(const CachedJob& job) const {
  if (const auto claim = membership_.claim(reconciler::shard_key(job.job))) return claim;
  const auto memory = memory_.find(job.key());
  if (memory == memory_.end() || memory->second->uid != job.uid) return std::nullopt;
  for (const auto& [number, attempt] : memory->second->attempts) {
    const auto& creation = attempt.creation;
    if (creation && membership_.holds(creation->claim)) return creation->claim;
  }
  return std::nullopt;
}

}  // namespace holdfast::controller
