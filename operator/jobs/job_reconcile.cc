// One reconcile of one job.
#include <algorithm>
#include <utility>

#include "core/side_by_side.h"
#include "operator/jobs/job_controller.h"
#include "operator/jobs/lanes.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::controller {
namespace {

// See collects().
constexpr std::chrono::milliseconds kCollection{100};

ReconcileResult failed(Error error) {
  ReconcileResult result;
  result.error = std::move(error);
  return result;
}

ReconcileResult again_after(std::optional<Duration> delay) {
  ReconcileResult result;
  result.wake_after = delay;
  return result;
}

ReconcileResult not_yet(Duration delay) {
  ReconcileResult result = again_after(delay);
  result.decided = false;
  return result;
}

}  // namespace

// A reconcile of a job. If it has a turn to create a pod and does not use it, another job gets the
// turn. A turn that comes meanwhile is the next reconcile's.
class JobController::Look {
 public:
  Look(Creations& creations, const std::string& key)
      : creations_(creations), key_(key), has_turn_(creations.has_turn(key)) {}
  ~Look() {
    if (has_turn_) creations_.looked_at(key_);
  }
  // It decides nothing: the next reconcile follows soon, and has the turn.
  void keep_turn() { has_turn_ = false; }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  Creations& creations_;
  const std::string& key_;
  bool has_turn_;
};

cache::Informer* JobController::behind(const std::string& ns, const JobMemory& memory) const {
  if (memory.job_version > jobs_->version(ns)) return &*jobs_;
  if (memory.pod_version > pods_->version(ns)) return &*pods_;
  cache::Informer& leases = heartbeats_.leases();
  return memory.lease_version > leases.version(ns) ? &leases : nullptr;
}

bool JobController::shows_writes_for(const std::string& key) const {
  const auto memory = memory_.find(key);
  return memory == memory_.end() || !behind(namespace_of(key), *memory->second);
}

Duration JobController::held(const std::string& key, const std::string& ns, JobMemory& memory) {
  cache::Informer* const waits_for = behind(ns, memory);
  if (waits_for) own_writes_.wake_when_shown(key);
  return memory.own_writes.left(waits_for, ns, {{"job", key}, {"seen", "our own write"}},
                                loop_.now());
}

// A job with many runs hears of its pods all the time. Decisions that come together share a write.
Duration JobController::collects(const CachedJob& job, const JobMemory& memory) const {
  if (!job.job.spec.many_runs() || !memory.last_look) return Duration::zero();
  return *memory.last_look + kCollection - loop_.now();
}

std::shared_ptr<JobMemory> JobController::remember(const CachedJob& job) {
  std::shared_ptr<JobMemory>& memory = memory_[job.key()];
  if (!memory || memory->uid != job.uid) {
    if (memory) drop_memory(memory);
    memory = std::make_shared<JobMemory>();
    memory->uid = job.uid;
  }
  return memory;
}

// Forgets a job that is at rest or belongs to another replica. First the caches must show our own
// writes. An intent of ours also stays, because it is still ours if the shard comes back after a
// lapse.
void JobController::forget(const std::string& key) {
  const auto found = memory_.find(key);
  if (found == memory_.end() || behind(namespace_of(key), *found->second)) return;
  JobMemory& memory = *found->second;
  const auto job = jobs_.get(key);
  // An intent that was sent may still be applied, or may not show yet.
  const bool is_same = job && job->uid == memory.uid;
  const bool is_intent =
      is_same &&
      std::any_of(memory.attempts.begin(), memory.attempts.end(), [&](const auto& entry) {
        const std::int64_t number = entry.first;
        const AttemptMemory& attempt = entry.second;
        const reconciler::Status& status = job->job.status;
        if (attempt.intent_stamps.empty() || attempt.pod_existed) return false;
        if (number > status.attempt) return !is_terminal(status.phase);
        return std::any_of(status.runs.begin(), status.runs.end(),
                           [&](const auto& run) { return run.open() && run.attempt == number; });
      });
  const bool awaits_pod =
      is_same &&
      std::any_of(memory.attempts.begin(), memory.attempts.end(), [&](const auto& entry) {
        return entry.second.created_version > pods_->version(namespace_of(key));
      });
  if (is_intent || awaits_pod || memory.creating()) return;
  drop_memory(found->second);
  memory_.erase(found);
}

void JobController::drop_deliveries(const std::string& key) {
  if (courier_) courier_->forget(key);
}

Task<ReconcileResult> JobController::reconcile(std::string key) {
  Look look(creations_, key);
  // It is reconciled when its namespace has been read.
  if (!readings_.read(namespace_of(key))) co_return ReconcileResult{};
  const JobPtr before = jobs_.get(key);
  auto strangers = release_strangers(key, before ? before->uid : "");
  const Status released = co_await strangers;
  // The cache may have changed meanwhile, and held() judges its version.
  const auto job = jobs_.get(key);
  if (!job) {
    if (const auto known = memory_.find(key); known != memory_.end()) {
      drop_memory(known->second);
      memory_.erase(known);
    }
    drop_deliveries(key);
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  const auto claim = claim_of(*job);
  if (!claim) {
    forget(key);
    drop_deliveries(key);
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  // It is reconciled when its shard's pods have been read.
  if (!pod_shards_.read(claim->shard, job->namespace_)) {
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  auto task = reconcile_claimed(key, job, *claim, look);
  ReconcileResult result = co_await task;
  if (!result.error && !released) result.error = released.error();
  co_return result;
}

Task<ReconcileResult> JobController::reconcile_claimed(std::string key, JobPtr job,
                                                       Ownership::Claim claim, Look& look) {
  const std::shared_ptr<void> in_hand = membership_.keep(claim.shard);
  const auto memory = remember(*job);
  // The shard is not kept for what nobody could put on record for so long.
  memory->forget_ended_creations([latest = loop_.now() - kHandOverLimit](const Creation& creation) {
    return creation.ended_at < latest;
  });
  settle_creations(memory);
  if (const Duration wait = collects(*job, *memory); wait > Duration::zero()) {
    look.keep_turn();
    co_return not_yet(wait);
  }
  if (const Duration wait = held(key, job->namespace_, *memory); wait > Duration::zero()) {
    look.keep_turn();
    co_return not_yet(wait);
  }
  // Record a refusal in the same reconcile as its intent. Between two reconciles the shard may be
  // handed over, and the next holder would treat the attempt as abandoned.
  auto current = job;
  while (true) {
    auto task = reconcile_job(current, claim, memory);
    const std::optional<ReconcileResult> done = co_await task;
    const bool is_recorded = !done || !done->error;
    if (is_recorded) {
      memory->forget_ended_creations([](const Creation& creation) { return creation.told; });
    }
    settle_creations(memory);
    memory->last_look = loop_.now();
    if (done) {
      if (is_terminal(current->job.status.phase) && !done->error) forget(key);
      co_return *done;
    }
    auto shown = own_writes_.shown(
        [this, ns = current->namespace_, memory] { return !behind(ns, *memory); });
    co_await shown;
    current = jobs_.get(key);
    const bool is_same = current && current->uid == memory->uid && membership_.holds(claim);
    if (!is_same || behind(current->namespace_, *memory)) {
      co_return again_after(std::chrono::milliseconds(1));
    }
  }
}

// What the pool must know before the decision's writes.
void JobController::tell_places(const CachedJob& job, const reconciler::Decision& decision) {
  places_->ask(job, decision.awaits_slots, decision.awaits_empty);
  for (const reconciler::Write& write : decision.writes) {
    const auto* const status = std::get_if<reconciler::WriteStatus>(&write);
    if (status) places_->placed(job, status->status);
  }
}

Task<std::optional<ReconcileResult>> JobController::reconcile_job(
    JobPtr job, Ownership::Claim claim, std::shared_ptr<JobMemory> memory) {
  const Log log = log_.with({{"reconcile", std::to_string(++reconciles_)},
                             {"job", job->key()},
                             {"uid", job->uid},
                             {"attempt", std::to_string(job->job.status.attempt)}});
  if (courier_) courier_->deliver(*job);
  Live live;
  std::optional<Error> unread;
  // With its Role in the namespace, Kubernetes takes the operator's rights.
  const bool may_lose_rights = !config_.namespaces.empty();
  bool namespace_goes = false;
  if (job->job.deleting && job->job.holds_outbox && !may_lose_rights) {
    auto look = namespace_looks_.goes(job->namespace_);
    namespace_goes = co_await look;
  }
  while (true) {
    reconciler::JobView seen = view(*job, *memory, live);
    seen.observed.namespace_goes = namespace_goes;
    seen.observed.may_lose_rights = may_lose_rights;
    const reconciler::Decision decision = reconciler::decide(seen, now());
    if (decision.confirm) {
      auto task = confirm(*job, decision, *memory, live);
      const Status confirmed = co_await task;
      if (!confirmed && !live.empty()) unread = confirmed.error();
      if (!confirmed && live.empty()) {
        // A due verdict waits for this read: retry it at least as often as a write.
        ReconcileResult result = failed(confirmed.error());
        result.wake_after = confirmed.error().retry_after.value_or(Duration::zero());
        co_return result;
      }
      continue;
    }
    if (decision.awaits_creation && !hands_over(claim.shard)) creations_.wait(job->key());
    const bool pod_may_come = !seen.observed.creations.empty();
    if (job->job.queue) permits_.ask(*job, decision.awaits_permit, pod_may_come);
    if (job->job.spec.pool && places_) tell_places(*job, decision);
    // The turn is taken before the intents are written. The other creations wait in line.
    const bool creates = std::any_of(
        decision.writes.begin(), decision.writes.end(),
        [](const auto& write) { return std::holds_alternative<reconciler::CreatePod>(write); });
    Creations::Slot turn =
        creates && creations_.admits(job->key()) ? creations_.take(job->key()) : nullptr;
    for (const reconciler::Write& write : decision.writes) {
      const auto* const status = std::get_if<reconciler::WriteStatus>(&write);
      if (status) withdraw_creations(status->status, *memory);
    }
    const std::uint64_t written = memory->status_writes;
    auto task = executor_.perform(*job, claim, decision, *memory, log, [&](const auto& write) {
      begin_creation(job, claim, memory, std::exchange(turn, nullptr), write, log);
    });
    const Result<Executor::Outcome> done = co_await task;
    if (!done) {
      // No watch will say so. After a conflict it will, and a lost answer may have been a success.
      // If the status is written, it is another write that was refused.
      const bool is_refused =
          memory->status_writes == written && (reconciler::person_must_help(done.error().code) ||
                                               done.error().code == ErrorCode::kThrottled);
      if (is_refused && job->job.spec.pool && places_) places_->not_placed(*job);
      if (done.error().code == ErrorCode::kNotFound) co_return again_after(decision.wake_after);
      if (reconciler::person_must_help(done.error().code)) {
        log.warn("a write was refused; it is tried again", {{"error", done.error().message}});
      } else {
        log.debug("a write failed; deciding again", {{"error", done.error().message}});
      }
    }
    if (done && done->decide_again) co_return std::nullopt;
    ReconcileResult result = again_after(decision.wake_after);
    // Until the last half hour of its time to live, the resyncs look at a finished job. Very many
    // timers would take more memory than the jobs.
    const bool is_finished = is_terminal(job->job.status.phase);
    if (is_finished && result.wake_after > config_.resync) result.wake_after.reset();
    result.priority = priority_of(*job);
    if (!done) result.error = done.error();
    if (done && done->later) result.error = done->later;
    if (!result.error && unread) {
      result.error = unread;
      result.wake_after = unread->retry_after.value_or(Duration::zero());
    }
    co_return result;
  }
}

Task<Status> JobController::release_strangers(std::string key, std::string uid) {
  std::vector<PodPtr> strangers;
  for (const PodPtr& pod : pods_.by_index(kByJob, key)) {
    if (!pod->pod.has_finalizer || pod->names(uid)) continue;
    if (membership_.claim_shard(shard_of(*pod))) strangers.push_back(pod);
  }
  if (strangers.empty()) co_return Unit{};
  // The cache of jobs may be behind the cache of pods: only a live read says that a job is gone.
  const std::string ns = namespace_of(key);
  const std::string name = key.substr(ns.size() + 1);
  std::string live_uid;
  if (!name.empty()) {
    auto get =
        client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name));
    const Result<JsonDocument> answer = co_await get;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
    live_uid = answer ? string_at(at(*answer, "metadata"), "uid") : "";
  }
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> releases;
  releases.reserve(strangers.size());
  for (const PodPtr& pod : strangers) {
    releases.emplace_back([this, &ns, &live_uid, &pod, &failure]() -> Task<void> {
      const auto claim = membership_.claim_shard(shard_of(*pod));
      if (failure || !claim || pod->names(live_uid)) co_return;
      const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
      auto task = executor_.release_pod(ns, pod->name, pod->uid, *claim, nullptr);
      const Status released = co_await task;
      if (!released) failure = released.error();
    });
  }
  const Lanes lanes(executor_.lanes(), ns, releases.size());
  auto together = side_by_side(loop_, lanes.count(), std::move(releases));
  co_await together;
  if (failure) co_return *failure;
  co_return Unit{};
}

}  // namespace holdfast::controller
