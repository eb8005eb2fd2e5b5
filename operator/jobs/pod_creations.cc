#include "operator/jobs/pod_creations.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace holdfast::jobs {
namespace {

// How long a shard's hand-over waits for creations. Nobody works on its other jobs meanwhile.
constexpr std::chrono::seconds kHandOverPatience{1};

}  // namespace

PodCreations::PodCreations(Dependencies dependencies, int each)
    : deps_(std::move(dependencies)), turns_(deps_.loop, each, deps_.on_turn) {}

PodCreations::~PodCreations() { deps_.loop.cancel(hand_over_timer_); }

bool PodCreations::is_over(const codecs::CachedJob& job, std::int64_t attempt) const {
  const codecs::JobPtr now = deps_.caches.job(job.key());
  if (!now || now->uid != job.uid || now->job.deleting) return true;
  const auto& runs = now->job.status.runs;
  return now->job.status.attempt >= attempt &&
         std::none_of(runs.begin(), runs.end(), [&](const reconciler::Run& run) {
           return run.open() && run.attempt == attempt;
         });
}

Creations::Slot PodCreations::take_turn(const std::string& key,
                                        const reconciler::Decision& decision) {
  const bool creates = std::any_of(
      decision.writes.begin(), decision.writes.end(),
      [](const auto& write) { return std::holds_alternative<reconciler::CreatePod>(write); });
  return creates && turns_.admits(key) ? turns_.take(key) : nullptr;
}

void PodCreations::withdraw(const reconciler::Decision& decision, JobMemory& memory) {
  for (const reconciler::Write& write : decision.writes) {
    const auto* const status = std::get_if<reconciler::WriteStatus>(&write);
    if (status) withdraw(status->status, memory);
  }
}

void PodCreations::withdraw(const reconciler::Status& next, JobMemory& memory) {
  for (auto& [number, attempt] : memory.attempts) {
    if (!attempt.creating() || !attempt.creation->ticket || number > next.attempt) continue;
    const bool goes_on = std::any_of(
        next.runs.begin(), next.runs.end(),
        [number = number](const auto& run) { return run.open() && run.attempt == number; });
    if (!goes_on) turns_.withdraw(*attempt.creation->ticket);
  }
}

void PodCreations::begin(codecs::JobPtr job, membership::Ownership::Claim claim,
                         JobMemories::Ptr memory, Creations::Slot turn,
                         const reconciler::CreatePod& write, const Log& log) {
  memory->attempts[write.attempt].creation = Creation{claim, deps_.membership.keep(claim.shard)};
  creating_.insert(memory);
  if (hands_over(claim.shard)) hand_over_soon();
  deps_.on_change();
  spawn(create(std::move(job), claim, std::move(memory), std::move(turn), write, log));
}

Task<void> PodCreations::create(codecs::JobPtr job, membership::Ownership::Claim claim,
                                JobMemories::Ptr memory, Creations::Slot slot,
                                reconciler::CreatePod write, Log log) {
  const std::string key = job->key();
  Creation& creation = *memory->attempts.at(write.attempt).creation;
  if (!slot && turns_.admits(key)) slot = turns_.take(key);
  if (!slot) {
    Callback<Creations::Slot> turn([&](Callback<Creations::Slot>::Done done) {
      creation.ticket = turns_.queue(key, std::move(done));
    });
    slot = co_await turn;
    creation.ticket.reset();
  }
  bool must_be_recorded = false;  // a refusal
  // It may have waited for long. What ends the attempt does not wait for it.
  if (!slot || !is_over(*job, write.attempt)) {
    Executor& executor = deps_.executor;
    auto task = slot ? executor.create_pod(*job, claim, write, *memory, log)
                     : executor.give_up_pod(*job, claim, write, *memory, log);
    const Result<Executor::Outcome> done = co_await task;
    must_be_recorded = done && done->decide_again;
  }
  slot.reset();
  creation.under_way = false;
  creation.ended_at = deps_.loop.now();
  // Of a job that is gone nobody makes a record.
  const bool is_known = deps_.memories.find(key) == memory;
  if (!must_be_recorded || !is_known) memory->attempts.at(write.attempt).creation.reset();
  settle(memory);
  deps_.on_end(key);
}

void PodCreations::cancel(const IsMeant& is_meant, bool hands_over) {
  for (const JobMemories::Ptr& memory : creating_) cancel(*memory, is_meant, hands_over);
}

void PodCreations::cancel(JobMemory& memory, const IsMeant& is_meant, bool hands_over) {
  for (auto& [number, attempt] : memory.attempts) {
    if (!attempt.creating() || !is_meant(attempt.creation->claim.shard)) continue;
    attempt.creation->handed_over = hands_over;
    if (attempt.creation->ticket) {
      turns_.withdraw(*attempt.creation->ticket);
    } else {
      deps_.client.cancel(attempt.creation->request);
    }
  }
}

void PodCreations::let_go(const JobMemories::Ptr& memory, int shard) {
  cancel(
      *memory, [shard](int of) { return of != shard; }, /*hands_over=*/false);
  memory->forget_ended_creations(
      [shard](const Creation& creation) { return creation.claim.shard != shard; });
  settle(memory);
}

void PodCreations::settle(const JobMemories::Ptr& memory) {
  if (memory->has_creation()) return;
  creating_.erase(memory);
  deps_.on_change();
}

void PodCreations::drop(const JobMemories::Ptr& memory) {
  memory->forget_ended_creations([](const Creation&) { return true; });
  settle(memory);
}

bool PodCreations::hands_over(int shard) const {
  return hands_all_over_ || deps_.membership.is_draining(shard);
}

void PodCreations::hand_over_soon() {
  if (hand_over_timer_ != 0 || stopped_) return;
  hand_over_timer_ = deps_.loop.call_after(kHandOverPatience, [this] {
    hand_over_timer_ = 0;
    cancel([this](int shard) { return hands_over(shard); }, /*hands_over=*/true);
  });
}

void PodCreations::hand_all_over() {
  hands_all_over_ = true;
  if (!creating_.empty()) hand_over_soon();
}

void PodCreations::lost(int shard) {
  cancel([shard](int of) { return of == shard; }, /*hands_over=*/false);
  // What has ended is somebody else's to put on record.
  const auto creating = creating_;
  for (const JobMemories::Ptr& memory : creating) {
    memory->forget_ended_creations(
        [shard](const Creation& creation) { return creation.claim.shard == shard; });
    settle(memory);
  }
}

void PodCreations::stop(std::function<void()> idle) {
  stopped_ = true;
  deps_.loop.cancel(std::exchange(hand_over_timer_, 0));
  turns_.stop(std::move(idle));
}

}  // namespace holdfast::jobs
