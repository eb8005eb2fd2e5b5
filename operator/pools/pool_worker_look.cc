// One reconcile of one worker.
#include <algorithm>
#include <utility>

#include "client/kube/lease_resource.h"
#include "operator/jobs/job_controller.h"
#include "operator/jobs/writes.h"
#include "operator/pools/pool_controller.h"
#include "reconciler/names.h"
#include "reconciler/refusals.h"

namespace holdfast::controller {
namespace {

// The busier a worker is, the longer its next entries wait for each other after a write, so that
// they share one: so long for each entry. The first one does not wait.
constexpr std::chrono::milliseconds kCollectionForEach{25};
// A record is older than an entry, or the watch will bring what a conflict was about.
constexpr std::chrono::milliseconds kWorkerLookAgain{500};

std::string lease_path(const std::string& ns, const std::string& name) {
  return kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, ns, name);
}

// Its Leases have the duration with which its agent runs, whatever the pool has by now.
WorkerPool owner_of(const Worker& worker, const CachedPool& pool) {
  WorkerPool owner{pool.name, pool.namespace_, pool.uid, pool.hash, pool.spec};
  owner.spec.lease_duration = worker.duration();
  return owner;
}

bool has_entry(const Work& work, const AttemptId& id) {
  return std::any_of(work.entries.begin(), work.entries.end(),
                     [&](const WorkEntry& entry) { return entry.id == id; });
}

ReconcileResult with(std::optional<Duration> wake_after) {
  ReconcileResult result;
  result.wake_after = wake_after;
  return result;
}

}  // namespace

Task<ReconcileResult> PoolController::reconcile(std::string key) {
  const std::size_t mark = key.find('#');
  const WorkerPtr worker =
      mark == std::string::npos ? nullptr : find_worker(namespace_of(key), key.substr(mark + 1));
  if (mark != std::string::npos && !worker) co_return ReconcileResult{};
  auto task = worker ? reconcile_worker(worker) : reconcile_pool(key);
  ReconcileResult result = co_await task;
  if (result.error && reconciler::person_must_help(result.error->code)) {
    log_.warn("a write for a pool was refused; it is tried again",
              {{"pool", key.substr(0, mark)}, {"error", result.error->message}});
  }
  co_return result;
}

Task<ReconcileResult> PoolController::reconcile_worker(WorkerPtr worker) {
  const auto claim = membership_.claim(worker->namespace_);
  // Without the Leases nothing is known of it. It is looked at again when they are there.
  if (!claim) co_return ReconcileResult{};
  if (leases_->version(worker->namespace_) == 0) co_return with(std::chrono::seconds(1));
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  if (worker->wants_read) {
    auto look = look_live(worker);
    const Status looked = co_await look;
    if (!looked) {
      ReconcileResult failed = with(std::nullopt);
      failed.error = looked.error();
      co_return failed;
    }
  }
  const reconciler::WorkerDecision decision = refresh(*worker);
  ReconcileResult result = with(decision.wake_after);
  // What a write has changed brings the next reconcile.
  if (decision.step != reconciler::WorkerStep::kNone) {
    auto task = take_step(worker, decision, *claim);
    const Status done = co_await task;
    if (!done) result.error = done.error();
    if (!done && done.error().code == ErrorCode::kForbidden) tell_refused(*worker, done.error());
    if (done && !result.wake_after) result.wake_after = kWorkerLookAgain;
    co_return result;
  }
  bool looks_again = false;
  std::optional<Work> next = next_work_of(*worker, looks_again);
  if (looks_again) {
    result.wake_after =
        std::min<Duration>(result.wake_after.value_or(kWorkerLookAgain), kWorkerLookAgain);
  }
  if (!next) co_return result;
  const auto entries = static_cast<int>(worker->work->work.entries.size());
  const Duration collects = kCollectionForEach * std::max(entries, 1);
  if (worker->last_write && loop_.now() - *worker->last_write < collects) {
    co_return with(*worker->last_write + collects - loop_.now());
  }
  auto task = write_work(worker, std::move(*next), *claim);
  const Status done = co_await task;
  worker->last_write = loop_.now();
  if (!done) result.error = done.error();
  co_return result;
}

// Its worker cannot start without its Leases: the pool's status says why.
void PoolController::tell_refused(const Worker& worker, const Error& error) {
  const auto pool = find_pool(worker.pool_key());
  if (!pool || worker.is_readable()) return;
  pool->refusal = {error.message, now()};
  work_.queue().add(worker.pool_key());
}

// ---- Its Leases.

Task<Status> PoolController::take_step(WorkerPtr worker, reconciler::WorkerDecision decision,
                                       Ownership::Claim claim) {
  using reconciler::WorkerStep;
  const auto pool = cached(worker->pool_key());
  const std::string& uid = worker->pod_uid;
  const bool makes = decision.step == WorkerStep::kMakeLease ||
                     decision.step == WorkerStep::kMakeRevokedLease ||
                     decision.step == WorkerStep::kMakeWork;
  if (makes && !pool) co_return Unit{};
  switch (decision.step) {
    case WorkerStep::kNone:
      co_return Unit{};
    case WorkerStep::kMakeLease:
    case WorkerStep::kMakeRevokedLease: {
      const bool is_revoked = decision.step == WorkerStep::kMakeRevokedLease;
      const std::string holder = is_revoked ? kRevokedHolder : worker_holder(worker->pod_name, uid);
      auto task = make_lease(worker, /*is_work=*/false,
                             new_worker_lease_body(owner_of(*worker, *pool), uid, holder), claim);
      co_return co_await task;
    }
    case WorkerStep::kMakeWork: {
      Work work;
      work.seq = 1;
      auto task =
          make_lease(worker, /*is_work=*/true,
                     new_work_lease_body(owner_of(*worker, *pool), uid, work, now()), claim);
      co_return co_await task;
    }
    case WorkerStep::kForget: {
      auto task = forget_leases(worker, claim);
      co_return co_await task;
    }
    case WorkerStep::kRevoke:
    case WorkerStep::kCutOff:
      break;
  }
  const WorkerLeasePtr lease = worker->lease;
  CachedWorkerLease ours = *lease;
  ours.duration = worker->duration();
  if (decision.step == WorkerStep::kRevoke) {
    // Somebody changes the Lease again and again.
    if (worker->last_revoke && loop_.now() - *worker->last_revoke < kWorkerLookAgain)
      co_return Unit{};
    worker->last_revoke = loop_.now();
  }
  if (!lease->refused.empty()) {
    // Of a pool that was deleted without its Leases: with its owner back, they go, too.
    ours.pool_name = worker->pool_name;
    ours.owner_uid = pool ? pool->uid : worker->pool_uid;
    if (ours.owner_uid.empty()) co_return Unit{};
  }
  const bool cuts_off = decision.step == WorkerStep::kCutOff;
  auto task = put_lease(worker, lease,
                        cuts_off ? cut_off_lease_body(ours, decision.reason, decision.message)
                                 : revoked_lease_body(ours),
                        claim);
  const Status done = co_await task;
  if (done) tell_end(*worker, decision);
  co_return done;
}

Task<Status> PoolController::make_lease(WorkerPtr worker, bool is_work, std::string body,
                                        Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  auto post = client_.post(
      kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, worker->namespace_),
      std::move(body), options);
  const Result<JsonDocument> answer = co_await post;
  if (!answer) {
    if (answer.error().code != ErrorCode::kAlreadyExists) co_return answer.error();
    auto read = read_lease(worker, is_work);
    co_return co_await read;
  }
  if (WorkerLeasePtr lease = decode_worker_lease(*answer))
    show_lease(std::move(lease), /*is_own=*/true);
  co_return Unit{};
}

Task<Status> PoolController::read_lease(WorkerPtr worker, bool is_work) {
  const std::string name =
      is_work ? work_lease_name(worker->pod_uid) : worker_lease_name(worker->pod_uid);
  auto get = client_.get(lease_path(worker->namespace_, name));
  const Result<JsonDocument> answer = co_await get;
  if (answer) {
    if (WorkerLeasePtr lease = decode_worker_lease(*answer))
      show_lease(std::move(lease), /*is_own=*/true);
    co_return Unit{};
  }
  if (answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (is_work ? worker->work != nullptr : worker->lease != nullptr) lease_is_gone(worker, is_work);
  co_return Unit{};
}

Task<Status> PoolController::look_live(WorkerPtr worker) {
  auto read = read_lease(worker, /*is_work=*/false);
  const Status done = co_await read;
  if (!done) co_return done;
  worker->wants_read = false;
  worker->last_read = loop_.now();
  if (!worker->lease) co_return Unit{};
  look_at_places(*worker, worker->lease->uid, {.of_open = true, .of_closed = false, .ids = {}});
  co_return Unit{};
}

// A conflict or a missing Lease is no failure: what is there now decides.
Task<Status> PoolController::put_lease(WorkerPtr worker, WorkerLeasePtr lease, std::string body,
                                       Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  auto put = client_.put(lease_path(lease->namespace_, lease->name), std::move(body), options);
  const Result<JsonDocument> answer = co_await put;
  if (answer) {
    if (WorkerLeasePtr written = decode_worker_lease(*answer))
      show_lease(std::move(written), /*is_own=*/true);
    co_return Unit{};
  }
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kConflict || code == ErrorCode::kNotFound) {
    auto read = read_lease(worker, lease->is_work);
    const Status read_again = co_await read;
    if (!read_again) co_return read_again;
  }
  co_return answer.error();
}

Task<Status> PoolController::forget_leases(WorkerPtr worker, Ownership::Claim claim) {
  // The worker Lease goes last: it says that the worker is cut off.
  for (const bool is_work : {true, false}) {
    const WorkerLeasePtr lease = is_work ? worker->work : worker->lease;
    if (!lease) continue;
    kube::CallOptions options;
    if (auto error = membership_.may_write(claim, options)) co_return *error;
    auto del = client_.del(lease_path(lease->namespace_, lease->name),
                           preconditions(lease->uid, lease->version), options);
    const Result<JsonDocument> answer = co_await del;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
    const WorkerLeasePtr& known = is_work ? worker->work : worker->lease;
    if (known && known->uid == lease->uid) lease_is_gone(worker, is_work);
  }
  co_return Unit{};
}

void PoolController::tell_end(const Worker& worker, const reconciler::WorkerDecision& decision) {
  const bool cuts_off = decision.step == reconciler::WorkerStep::kCutOff;
  const std::string name = worker.pod_name.empty() ? worker.pod_uid : worker.pod_name;
  log_.info(cuts_off ? "a worker was cut off" : "a worker was revoked",
            {{"pool", worker.pool_key()}, {"worker", name}, {"reason", decision.reason}});
  const auto pool = cached(worker.pool_key());
  const std::int64_t attempts =
      pool && worker.lease
          ? pool_of(worker.pool_key())->book.workers().of(worker.lease->uid).attempts()
          : 0;
  if (cuts_off) telemetry_.cut_off(worker.namespace_, worker.pool_name, decision.reason);
  // The end of a pod that held nothing is no news: each scale-in has one.
  const bool is_usual = std::string(decision.reason) == "PodEnded" && attempts == 0;
  if (!pool || is_usual) return;
  ObjectReference reference;
  reference.kind = reconciler::kPoolKind;
  reference.namespace_ = worker.namespace_;
  reference.name = worker.pool_name;
  reference.uid = pool->uid;
  events_.record(reference, /*warning=*/true, cuts_off ? "WorkerCutOff" : "WorkerRevoked",
                 cuts_off ? "CutOff" : "Revoke",
                 "worker " + name + (cuts_off ? " is cut off: " : " is revoked: ") +
                     decision.message + "; it had " + std::to_string(attempts) + " attempts");
}

void PoolController::tell_hand_backs(const Worker& worker, const reconciler::WorkerView& before) {
  if (!membership_.holds(worker.namespace_)) return;
  const auto returned = [](const reconciler::WorkerView& view, const AttemptId& id) {
    return std::any_of(view.report.answers.begin(), view.report.answers.end(),
                       [&](const Answer& answer) {
                         return answer.kind == AnswerKind::kReturned && answer.id == id;
                       });
  };
  for (const Answer& answer : worker.view.report.answers) {
    if (!returned(worker.view, answer.id) || returned(before, answer.id)) continue;
    telemetry_.handed_back(worker.namespace_, worker.pool_name);
  }
}

// ---- Its work.

// What the cached record says. A job that is not in the cache is gone only if the cache is as new
// as the entry.
reconciler::RecordSays PoolController::record(const Worker& worker, const AttemptId& id,
                                              const std::string& job_name) {
  using reconciler::RecordSays;
  const std::string key = worker.namespace_ + "/" + job_name;
  const auto job = jobs_.get(key);
  if (!job || job->uid != id.job_uid) {
    const cache::Moment seen = jobs_reach_.since(worker.work->uid, worker.work->version);
    const bool is_gone = jobs_reach_.has(worker.namespace_, seen, worker.queue_key());
    return is_gone ? RecordSays::kOver : RecordSays::kUnknown;
  }
  if (job->job.deleting) return RecordSays::kOver;
  const reconciler::Status& status = job->job.status;
  if (id.attempt > status.attempt) return RecordSays::kUnknown;
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const auto& one) { return one.index == id.run; });
  const bool is_open = run != status.runs.end() && run->attempt == id.attempt && run->open() &&
                       run->worker_uid == worker.lease->uid && !is_terminal(status.phase);
  return is_open ? RecordSays::kRun : RecordSays::kOver;
}

std::optional<Work> PoolController::next_work_of(const Worker& worker, bool& looks_again) {
  using reconciler::WorkerIs;
  if (!worker.is_readable() || worker.lease->is() == WorkerIs::kCutOff) return std::nullopt;
  const std::string& echoed = worker.lease->report.work_uid;
  if (!echoed.empty() && echoed != worker.work->uid) return std::nullopt;
  const Work& work = worker.work->work;
  const auto pool = find_pool(worker.pool_key());
  const auto end = worker.pod ? worker.pod->end : std::nullopt;
  const std::optional<Work> mark = reconciler::marked(work, worker.wants_drain, end);
  std::vector<reconciler::Placed> placed;
  // A write that marks it adds nothing: whoever reads the mark knows that nothing comes any more.
  if (pool && !mark && worker.lease->is() == WorkerIs::kLive) {
    placed = pool->book.workers().of(worker.lease->uid).open_places();
  }
  const auto name_of = [&](const AttemptId& id) {
    for (const WorkEntry& entry : work.entries) {
      if (entry.id == id) return entry.job_name;
    }
    return pool ? pool->book.name_of(id.job_uid) : std::string();
  };
  std::optional<Work> next =
      next_work(work, worker.lease->report, placed, [&](const AttemptId& id) {
        const reconciler::RecordSays says = record(worker, id, name_of(id));
        if (says == reconciler::RecordSays::kUnknown) looks_again = true;
        return says;
      });
  if (!mark || !next) return mark ? mark : next;
  next->draining = mark->draining;
  next->end = mark->end;
  return next;
}

Task<Status> PoolController::write_work(WorkerPtr worker, Work next, Ownership::Claim claim) {
  const WorkerLeasePtr lease = worker->work;
  const std::string lease_uid = worker->lease->uid;
  worker->marking = worker->marking || (next.draining && !lease->work.draining);
  auto task = put_lease(worker, lease, work_lease_body(*lease, next, now()), claim);
  const Status done = co_await task;
  if (done || !done.error().maybe_applied) worker->marking = false;
  if (!done) co_return done;
  const auto pool = find_pool(worker->pool_key());
  for (const WorkEntry& entry : next.entries) {
    if (!pool || has_entry(lease->work, entry.id)) continue;
    const auto waited = pool->book.workers().of(lease_uid).waited(entry.id, loop_.now());
    if (waited) telemetry_.slot_taken(worker->namespace_, worker->pool_name, *waited);
  }
  co_return Unit{};
}

}  // namespace holdfast::controller
