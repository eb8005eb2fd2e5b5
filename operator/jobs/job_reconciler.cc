#include "operator/jobs/job_reconciler.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "client/kube/object.h"
#include "operator/jobs/job_stop.h"
#include "operator/jobs/job_triggers.h"
#include "operator/jobs/pod_index.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {
namespace {

// See collects().
constexpr std::chrono::milliseconds kCollection{100};

controller::ReconcileResult failed(Error error) {
  controller::ReconcileResult result;
  result.error = std::move(error);
  return result;
}

controller::ReconcileResult again_after(std::optional<Duration> delay) {
  controller::ReconcileResult result;
  result.wake_after = delay;
  return result;
}

// The job has changed, or is gone.
bool is_outdated(const Error& error) {
  return error.code == ErrorCode::kConflict || error.code == ErrorCode::kNotFound;
}

controller::ReconcileResult not_yet(Duration delay) {
  controller::ReconcileResult result = again_after(delay);
  result.decided = false;
  return result;
}

}  // namespace

JobReconciler::JobReconciler(const Dependencies& dependencies, Config config)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      config_(std::move(config)),
      caches_(dependencies.caches),
      membership_(dependencies.membership),
      neighbours_(dependencies.neighbours),
      executor_(dependencies.executor),
      memories_(dependencies.memories),
      creations_(dependencies.creations),
      finished_(
          {loop_, dependencies.client, log_, caches_, memories_, neighbours_, dependencies.look},
          config_.namespaces),
      looks_{
          JobObserver(
              loop_, client_,
              {dependencies.random, caches_, membership_, dependencies.nodes, dependencies.silences,
               dependencies.shards, creations_, neighbours_, executor_}),
          LiveReads({loop_, dependencies.client, caches_, dependencies.nodes, dependencies.shards,
                     executor_.channels()}),
          observe::NamespaceLooks(
              loop_, [this](std::string ns) { return executor_.namespace_goes(std::move(ns)); })},
      strangers_(loop_, dependencies.client, caches_, membership_, executor_) {}

std::optional<membership::Ownership::Claim> JobReconciler::claim_of(
    const codecs::CachedJob& job) const {
  const std::string key = reconciler::shard_key(job.job);
  if (const auto claim = membership_.claim(key)) return claim;
  const JobMemories::Ptr memory = memories_.find(job);
  if (!memory) return std::nullopt;
  for (const auto& [number, attempt] : memory->attempts) {
    const auto& creation = attempt.creation;
    if (!creation || !membership_.covers(creation->claim, key)) continue;
    if (membership_.holds(creation->claim)) return creation->claim;
  }
  return std::nullopt;
}

// An edit of its status may have given the job to another shard while a pod of it is being created.
void JobReconciler::let_go(const codecs::CachedJob& job) {
  if (const JobMemories::Ptr memory = memories_.find(job)) {
    creations_.let_go(memory, caches_.shard_of(job));
  }
  memories_.forget(job.key());
  neighbours_.forget(job.key());
  finished_.forget(job.key());
}

// A job with many runs hears of its pods all the time. Decisions that come together share a write.
Duration JobReconciler::collects(const codecs::CachedJob& job, const JobMemory& memory) const {
  if (!job.job.spec.many_runs() || !memory.last_look) return Duration::zero();
  return *memory.last_look + kCollection - loop_.now();
}

Task<controller::ReconcileResult> JobReconciler::reconcile(std::string key) {
  PodCreations::Look look(creations_, key);
  // It is reconciled when its namespace has been read.
  if (!caches_.has_read(kube::namespace_of(key))) co_return controller::ReconcileResult{};
  const codecs::JobPtr before = caches_.job(key);
  auto strangers = strangers_.settle(key, before);
  const Result<> released = co_await strangers;
  // The cache may have changed meanwhile, and held() judges its version.
  const codecs::JobPtr job = caches_.job(key);
  if (!job) {
    memories_.drop(key);
    neighbours_.forget(key);
    finished_.forget(key);
    if (leads_back(key)) finished_.look_for(key);
    co_return released ? controller::ReconcileResult{} : failed(released.error());
  }
  // It has left the watch, and is read first.
  if (finished_.is_sought(key)) {
    co_return released ? controller::ReconcileResult{} : failed(released.error());
  }
  const auto claim = claim_of(*job);
  if (!claim) {
    let_go(*job);
    co_return released ? controller::ReconcileResult{} : failed(released.error());
  }
  // It is reconciled when its shard has been read.
  if (!caches_.has_read(claim->shard, job->namespace_)) {
    co_return released ? controller::ReconcileResult{} : failed(released.error());
  }
  auto task = reconcile_claimed(key, job, *claim, look);
  controller::ReconcileResult result = co_await task;
  if (!result.error && !released) result.error = released.error();
  co_return result;
}

Task<controller::ReconcileResult> JobReconciler::reconcile_claimed(
    std::string key, codecs::JobPtr job, membership::Ownership::Claim claim,
    PodCreations::Look& look) {
  const std::shared_ptr<void> in_hand = membership_.keep(claim.shard);
  const JobMemories::Ptr memory = memories_.remember(*job);
  // The shard is not kept for what nobody could put on record for so long.
  memory->forget_ended_creations(
      [latest = loop_.now() - JobStop::kHandOverLimit](const Creation& creation) {
        return creation.ended_at < latest;
      });
  creations_.settle(memory);
  if (const Duration wait = collects(*job, *memory); wait > Duration::zero()) {
    look.keep_turn();
    co_return not_yet(wait);
  }
  if (const Duration wait = memories_.held(key, *memory); wait > Duration::zero()) {
    look.keep_turn();
    co_return not_yet(wait);
  }
  // Record a refusal in the same reconcile as its intent. Between two reconciles the shard may be
  // handed over, and the next holder would treat the attempt as abandoned.
  auto current = job;
  while (true) {
    auto task = reconcile_job(current, claim, memory);
    const std::optional<controller::ReconcileResult> done = co_await task;
    const bool is_recorded = !done || !done->error;
    if (is_recorded) {
      memory->forget_ended_creations([](const Creation& creation) { return creation.reported; });
    }
    creations_.settle(memory);
    memory->last_look = loop_.now();
    if (done) {
      if (is_terminal(current->job.status.phase) && !done->error) memories_.forget(key);
      co_return *done;
    }
    auto shown = memories_.own_writes_shown(current->namespace_, memory);
    co_await shown;
    current = caches_.job(key);
    const bool is_same = current && current->uid == memory->uid && membership_.holds(claim) &&
                         membership_.covers(claim, reconciler::shard_key(current->job));
    if (!is_same || memories_.lags(current->namespace_, *memory) || finished_.is_sought(key)) {
      co_return again_after(std::chrono::milliseconds(1));
    }
  }
}

Task<std::optional<controller::ReconcileResult>> JobReconciler::reconcile_job(
    codecs::JobPtr job, membership::Ownership::Claim claim, JobMemories::Ptr memory) {
  const Log log = log_.with({{"reconcile", std::to_string(++reconciles_)},
                             {"job", job->key()},
                             {"uid", job->uid},
                             {"attempt", std::to_string(job->job.status.attempt)}});
  neighbours_.deliver(*job);
  auto task = decide(*job, *memory);
  const Result<Decided> decided = co_await task;
  if (!decided) {
    // No watch says that it has changed or is gone.
    const bool is_kept = caches_.jobs()->is_kept(job->key());
    if (is_kept && is_outdated(decided.error())) finished_.look_for(job->key());
    // A due verdict waits for this read: retry it at least as often as a write.
    controller::ReconcileResult result = failed(decided.error());
    result.wake_after = decided.error().retry_after.value_or(Duration::zero());
    co_return result;
  }
  const reconciler::Decision& decision = decided->decision;
  if (decision.awaits_creation && !creations_.hands_over(claim.shard)) {
    creations_.turns().wait(job->key());
  }
  neighbours_.report(*job, decision, decided->pod_may_come);
  // The turn is taken before the intents are written. The other creations wait in line.
  Creations::Slot turn = creations_.take_turn(job->key(), decision);
  creations_.withdraw(decision, *memory);
  const std::uint64_t written = memory->status_writes;
  auto work = executor_.perform(*job, claim, decision, *memory, log, [&](const auto& write) {
    creations_.begin(job, claim, memory, std::exchange(turn, nullptr), write, log);
  });
  const Result<Executor::Outcome> done = co_await work;
  finished_.written(job->key());
  if (job->job.status.settled) {
    // No watch shows this write, nor why it was refused.
    const bool is_written = memory->status_writes != written;
    if (is_written) memory->own.job = 0;
    if (is_written || (!done && is_outdated(done.error()))) finished_.look_for(job->key());
  }
  if (done && !done->later) rest(*job, decision);
  if (!done) {
    on_failure(*job, done.error(), memory->status_writes != written, log);
    if (done.error().code == ErrorCode::kNotFound) co_return again_after(decision.wake_after);
  }
  if (done && done->decide_again) co_return std::nullopt;
  co_return result_of(*job, *decided, done);
}

Task<Result<JobReconciler::Decided>> JobReconciler::decide(const codecs::CachedJob& job,
                                                           JobMemory& memory) {
  Decided decided;
  LiveRuns live;
  observe::LookTimes asked;
  const reconciler::Settling settling = finished_.settling(job);
  bool namespace_goes = false;
  if (job.job.deleting && job.job.holds_outbox && !config_.may_lose_rights) {
    auto task = looks_.namespaces.goes(job.namespace_);
    namespace_goes = co_await task;
  }
  while (true) {
    reconciler::JobView seen = looks_.observer.view(job, memory, live, asked);
    seen.observed.settling = settling;
    seen.observed.namespace_goes = namespace_goes;
    seen.observed.may_lose_rights = config_.may_lose_rights;
    const Time time = now();
    decided.decision = reconciler::decide(seen, time);
    decided.pod_may_come = !seen.observed.creations.empty();
    if (!decided.decision.confirm) co_return std::move(decided);
    if (live.empty()) asked = looks_.observer.look_times(job, time);
    auto task = looks_.live.confirm(job, decided.decision, memory, live);
    const Result<> confirmed = co_await task;
    if (!confirmed && live.empty()) co_return confirmed.error();
    if (!confirmed) decided.unread = confirmed.error();
  }
}

// Something of a job that the cache lacks concerns this replica. At rest nothing of the job did.
bool JobReconciler::leads_back(const std::string& key) {
  const std::optional<std::string> left = finished_.take_left(key);
  const auto pods = caches_.pods().by_index(kByJob, key);
  const bool has_pod = std::any_of(pods.begin(), pods.end(), [&](const codecs::PodPtr& pod) {
    return !pod->job_name.empty() && caches_.shows_all(caches_.shard_of(*pod), pod->namespace_) &&
           (!left || pod->names(*left));
  });
  if (has_pod) return true;
  const std::string ns = kube::namespace_of(key);
  const auto leases = caches_.heartbeats().of_job(ns, key.substr(ns.size() + 1));
  return std::any_of(leases.begin(), leases.end(), [&](const codecs::HeartbeatPtr& lease) {
    return jobs::leads_back(*lease) && caches_.may_be_ours(*lease) &&
           (!left || lease->owner_uid == *left);
  });
}

void JobReconciler::rest(const codecs::CachedJob& job, const reconciler::Decision& decision) {
  const auto& writes = decision.writes;
  const bool is_deleted = std::any_of(writes.begin(), writes.end(), [](const auto& write) {
    return std::holds_alternative<reconciler::DeleteJob>(write);
  });
  if (decision.lacks_settled) finished_.settle(job);
  if (decision.at_rest) finished_.at_rest(job);
  if (is_deleted) finished_.deleted(job.key());
}

void JobReconciler::on_failure(const codecs::CachedJob& job, const Error& error,
                               bool status_is_written, const Log& log) const {
  const bool needs_help = reconciler::person_must_help(error.code);
  // No watch will say so. After a conflict it will, and a lost answer may have been a success. If
  // the status is written, it is another write that was refused.
  const bool is_refused = needs_help || error.code == ErrorCode::kThrottled;
  if (!status_is_written && is_refused) neighbours_.not_written(job);
  if (error.code == ErrorCode::kNotFound) return;
  if (needs_help) {
    log.warn("a write was refused; it is tried again", {{"error", error.message}});
  } else {
    log.debug("a write failed; deciding again", {{"error", error.message}});
  }
}

controller::ReconcileResult JobReconciler::result_of(const codecs::CachedJob& job,
                                                     const Decided& decided,
                                                     const Result<Executor::Outcome>& done) const {
  controller::ReconcileResult result = again_after(decided.decision.wake_after);
  // Until the last half hour of its time to live, the resyncs look at a finished job. Very many
  // timers would take more memory than the jobs.
  const bool is_finished = is_terminal(job.job.status.phase);
  if (is_finished && result.wake_after > config_.resync) result.wake_after.reset();
  result.priority = priority_of(job);
  if (!done) result.error = done.error();
  if (done && done->later) result.error = done->later;
  if (!result.error && decided.unread) {
    result.error = decided.unread;
    result.wake_after = decided.unread->retry_after.value_or(Duration::zero());
  }
  return result;
}

}  // namespace holdfast::jobs
