// What happens to the warm workers of the random world beside their work.
#include <algorithm>

#include "tests/unit/reconciler/worker_world.h"

namespace holdfast::reconciler::testing {

void Workers::pool_acts(const Job* job, int chance) {
  if (count_ == 0 || outage_) return;
  const std::uint64_t before = version_;
  std::size_t good = 0;
  for (Agent& agent : agents_) {
    const Time quiet_since = std::max(agent.leases.changed, outage_end_);
    const bool is_silent = !agent.alive || now_ - quiet_since >= kWorkerLease;
    if (agent.has_lease && agent.leases.is != WorkerIs::kCutOff && is_silent &&
        rng_.percent(chance)) {
      note(agent, agent.alive ? "is silent, and cut off" : "has ended, and is cut off");
      agent.leases.is = WorkerIs::kCutOff;
      agent.leases.out_of_memory = agent.out_of_memory;
      agent.leases.changed = now_;
      ++version_;
    }
    const bool drains = agent.draining || (agent.leases.work && agent.leases.work->draining);
    if (agent.alive && agent.has_lease && agent.leases.is == WorkerIs::kLive && !drains) ++good;
    // A worker that drains and has no entry goes.
    const bool is_idle = agent.leases.work && agent.leases.work->entries.empty();
    if (drains && is_idle && rng_.percent(chance)) agent.alive = false;
  }
  const auto is_over = [&](const Agent& agent) {
    if (!agent.has_lease) return !agent.alive;
    if (agent.leases.is != WorkerIs::kCutOff || agent.alive) return false;
    return !job || std::none_of(job->status.runs.begin(), job->status.runs.end(),
                                [&](const Run& run) { return run.worker_uid == agent.leases.uid; });
  };
  if (rng_.percent(chance) && std::erase_if(agents_, is_over) > 0) ++version_;
  if (good < count_ && rng_.percent(chance)) add_worker();
  // The pod of a worker that is cut off, or has lost a Lease, is deleted.
  for (Agent& agent : agents_) {
    const bool is_lost = !agent.has_lease || agent.leases.is == WorkerIs::kCutOff;
    if (is_lost && !agent.is_steady(now_) && rng_.percent(chance)) agent.alive = false;
  }
  if (version_ != before) changed();
}

// ---- Other jobs in the pool. Their records are the world's; replicas see them with the Leases.

namespace {

constexpr const char* kOtherPrefix = "other-";
// The job's own attempts have lower numbers.
constexpr std::int64_t kFirstOther = 1'000'000;

}  // namespace

bool is_other(const AttemptId& id) { return id.job_uid.starts_with(kOtherPrefix); }

// The worker has answered, or nobody waits for its answer.
bool Workers::other_is_over(const OtherPlace& other) const {
  for (const Agent& agent : agents_) {
    if (!agent.has_lease || agent.leases.uid != other.worker_uid) continue;
    const auto& answers = agent.leases.report.answers;
    return agent.leases.is == WorkerIs::kCutOff ||
           std::any_of(answers.begin(), answers.end(), [&](const holdfast::Answer& answer) {
             return answer.id == other.id && answer.kind != AnswerKind::kRunning;
           });
  }
  return true;
}

void Workers::open_other() {
  const Agent& agent =
      agents_[static_cast<std::size_t>(rng_.below(static_cast<int>(agents_.size())))];
  const bool drains =
      agent.leases.report.draining || !agent.leases.work || agent.leases.work->draining;
  if (!agent.has_lease || agent.leases.is != WorkerIs::kLive || drains) return;
  const auto used = std::count_if(others_.begin(), others_.end(), [&](const OtherPlace& other) {
    return other.worker_uid == agent.leases.uid;
  });
  if (agent.leases.work->entries.size() + static_cast<std::size_t>(used) >= kSlots) return;
  const int number = others_made_++;
  const AttemptId id{kOtherPrefix + std::to_string(number), 0, kFirstOther + number};
  note(agent, "gets another job's", &id);
  others_.push_back({id, agent.leases.uid});
}

void Workers::others_act(int chance) {
  if (!is_shared_ || outage_ || agents_.empty()) return;
  const std::size_t before = others_.size();
  const int made = others_made_;
  // A job of them may also be cancelled, or run into a deadline.
  std::erase_if(others_, [&](const OtherPlace& other) {
    return other_is_over(other) ? rng_.percent(chance) : !calm_ && rng_.percent(3);
  });
  if (!calm_ && rng_.percent(chance)) open_other();
  if (others_.size() == before && others_made_ == made) return;
  ++version_;
  changed();
}

void Workers::trouble() {
  if (agents_.empty()) return;
  Agent& agent = agents_[static_cast<std::size_t>(rng_.below(static_cast<int>(agents_.size())))];
  const std::uint64_t before = version_;
  note(agent, "has trouble");
  switch (rng_.below(19)) {
    case 0:
    case 1:
    case 2:
      agent.reachable = !agent.reachable;
      break;
    case 3:
    case 4:
      agent.frozen = !agent.frozen;
      // Its deadlines come first.
      if (!agent.frozen && !agent.is_steady(now_)) kill_all(agent);
      break;
    case 5:
    case 6:
      agent.alive = false;
      break;
    case 7:
    case 8:
      agent.draining = true;
      break;
    case 9:
    case 10:
    case 11:
      if (!agent.leases.work || outage_) break;
      if (auto next = marked(*agent.leases.work, true, std::nullopt)) {
        agent.leases.work = *next;
        agent.leases.work_version = ++version_;
      }
      break;
    case 12:
      if (agent.leases.is == WorkerIs::kLive && !outage_) {
        agent.leases.is = WorkerIs::kRevoked;
        agent.leases.changed = now_;
        ++version_;
      }
      break;
    case 13:
      agent.leases.work.reset();
      agent.leases.work_uid.clear();
      ++version_;
      break;
    case 14:
      agent.has_lease = false;
      ++version_;
      break;
    case 15:
    case 16:
    case 17:
      agent.out_of_memory = agent.alive;
      agent.alive = false;
      break;
    default:
      pool_exists_ = !pool_exists_;
      pool_was_missing_ = true;
      break;
  }
  if (version_ != before) changed();
}

void Workers::calm_down() {
  calm_ = true;
  pool_exists_ = true;
  outage_ = false;
  for (Agent& agent : agents_) {
    agent.reachable = true;
    if (agent.frozen && !agent.is_steady(now_)) kill_all(agent);
    agent.frozen = false;
  }
}

}  // namespace holdfast::reconciler::testing
