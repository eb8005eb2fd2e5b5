#include "operator/pools/worker_reconciler.h"

#include <algorithm>
#include <utility>

#include "client/kube/lease_resource.h"
#include "operator/jobs/writes.h"
#include "operator/pools/worker_facts.h"
#include "reconciler/pool/work.h"

namespace holdfast::pools {
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

controller::ReconcileResult with(std::optional<Duration> wake_after) {
  controller::ReconcileResult result;
  result.wake_after = wake_after;
  return result;
}

}  // namespace

Task<controller::ReconcileResult> WorkerReconciler::reconcile(WorkerPtr worker) {
  const auto claim = deps_.membership.claim(worker->namespace_);
  if (!claim) co_return controller::ReconcileResult{};
  // Without the Leases nothing is known of it, and without the jobs nothing of its work. It is looked
  // at again when they are there.
  const std::string& ns = worker->namespace_;
  if (deps_.caches.leases->version(ns) == 0 || !deps_.caches.have_jobs(claim->shard, ns))
    co_return with(std::chrono::seconds(1));
  const std::shared_ptr<void> in_hand = deps_.membership.keep(claim->shard);
  if (worker->live_read.wanted) {
    auto look = look_live(worker);
    const Result<> looked = co_await look;
    if (!looked) {
      controller::ReconcileResult failed = with(std::nullopt);
      failed.error = looked.error();
      co_return failed;
    }
  }
  const reconciler::WorkerDecision decision = tracker_.refresh(*worker);
  controller::ReconcileResult result = with(decision.wake_after);
  // What a write has changed brings the next reconcile.
  if (decision.step != reconciler::WorkerStep::kNone) {
    auto task = take_step(worker, decision, *claim);
    const Result<> done = co_await task;
    if (!done) result.error = done.error();
    if (!done && done.error().code == ErrorCode::kForbidden) record_refusal(*worker, done.error());
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
  std::optional<SteadyTime>& last_write = worker->moments.work_written;
  if (last_write && deps_.loop.now() - *last_write < collects) {
    co_return with(*last_write + collects - deps_.loop.now());
  }
  auto task = write_work(worker, std::move(*next), *claim);
  const Result<> done = co_await task;
  last_write = deps_.loop.now();
  if (!done) result.error = done.error();
  co_return result;
}

// Its worker cannot start without its Leases: the pool's status says why.
void WorkerReconciler::record_refusal(const Worker& worker, const Error& error) {
  const auto pool = deps_.known.find(worker.pool_key());
  if (!pool || worker.is_readable()) return;
  pool->refusal = {error.message, deps_.now()};
  deps_.looks.add(worker.pool_key());
}

// ---- Its Leases.

Task<Result<>> WorkerReconciler::take_step(WorkerPtr worker, reconciler::WorkerDecision decision,
                                           membership::Ownership::Claim claim) {
  using reconciler::WorkerStep;
  const auto pool = deps_.caches.pools.get(worker->pool_key());
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
      auto task = make_lease(
          worker, /*is_work=*/false,
          new_worker_lease_body(owner_of(*worker, *pool), label(claim), uid, holder), claim);
      co_return co_await task;
    }
    case WorkerStep::kMakeWork: {
      Work work;
      work.seq = 1;
      auto task = make_lease(
          worker, /*is_work=*/true,
          new_work_lease_body(owner_of(*worker, *pool), label(claim), uid, work, deps_.now()),
          claim);
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
  auto task = revoke_or_cut_off(worker, std::move(decision), claim);
  co_return co_await task;
}

Task<Result<>> WorkerReconciler::revoke_or_cut_off(WorkerPtr worker,
                                                   reconciler::WorkerDecision decision,
                                                   membership::Ownership::Claim claim) {
  using reconciler::WorkerStep;
  const auto pool = deps_.caches.pools.get(worker->pool_key());
  const WorkerLeasePtr lease = worker->lease.get();
  CachedWorkerLease ours = *lease;
  ours.duration = worker->duration();
  if (decision.step == WorkerStep::kRevoke) {
    // Somebody changes the Lease again and again.
    std::optional<SteadyTime>& last = worker->moments.revoke_written;
    if (last && deps_.loop.now() - *last < kWorkerLookAgain) co_return Unit{};
    last = deps_.loop.now();
  }
  if (!lease->refused.empty()) {
    // Of a pool that was deleted without its Leases: with its owner back, they go, too.
    ours.pool_name = worker->pool_name;
    ours.owner_uid = pool ? pool->uid : worker->pool_uid;
    if (ours.owner_uid.empty()) co_return Unit{};
  }
  const bool cuts_off = decision.step == WorkerStep::kCutOff;
  auto task =
      put_lease(worker, lease,
                cuts_off ? cut_off_lease_body(ours, label(claim), decision.reason, decision.message)
                         : revoked_lease_body(ours, label(claim)),
                claim);
  const Result<> done = co_await task;
  if (done) report_end(*worker, decision);
  co_return done;
}

Task<Result<>> WorkerReconciler::make_lease(WorkerPtr worker, bool is_work, std::string body,
                                            membership::Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = deps_.membership.may_write(claim, options)) co_return *error;
  auto post = deps_.client.post(
      kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, worker->namespace_),
      std::move(body), options);
  const Result<JsonDocument> answer = co_await post;
  if (!answer) {
    if (answer.error().code != ErrorCode::kAlreadyExists) co_return answer.error();
    auto read = read_lease(worker, is_work);
    co_return co_await read;
  }
  if (WorkerLeasePtr lease = decode_worker_lease(*answer))
    tracker_.show_lease(std::move(lease), /*is_own=*/true);
  co_return Unit{};
}

Task<Result<>> WorkerReconciler::read_lease(WorkerPtr worker, bool is_work) {
  const std::string name =
      is_work ? work_lease_name(worker->pod_uid) : worker_lease_name(worker->pod_uid);
  auto get = deps_.client.get(lease_path(worker->namespace_, name));
  const Result<JsonDocument> answer = co_await get;
  if (answer) {
    if (WorkerLeasePtr lease = decode_worker_lease(*answer))
      tracker_.show_lease(std::move(lease), /*is_own=*/true);
    co_return Unit{};
  }
  if (answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (is_work ? worker->work : worker->lease) tracker_.lease_is_gone(worker, is_work);
  co_return Unit{};
}

Task<Result<>> WorkerReconciler::look_live(WorkerPtr worker) {
  auto read = read_lease(worker, /*is_work=*/false);
  const Result<> done = co_await read;
  if (!done) co_return done;
  worker->live_read.wanted = false;
  worker->live_read.last = deps_.loop.now();
  if (!worker->lease) co_return Unit{};
  deps_.looks.look_at_places(*worker, worker->lease->uid,
                             {.of_open = true, .of_closed = false, .ids = {}});
  co_return Unit{};
}

// A conflict or a missing Lease is no failure: what is there now decides.
Task<Result<>> WorkerReconciler::put_lease(WorkerPtr worker, WorkerLeasePtr lease, std::string body,
                                           membership::Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = deps_.membership.may_write(claim, options)) co_return *error;
  auto put = deps_.client.put(lease_path(lease->namespace_, lease->name), std::move(body), options);
  const Result<JsonDocument> answer = co_await put;
  if (answer) {
    if (WorkerLeasePtr written = decode_worker_lease(*answer))
      tracker_.show_lease(std::move(written), /*is_own=*/true);
    co_return Unit{};
  }
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kConflict || code == ErrorCode::kNotFound) {
    auto read = read_lease(worker, lease->is_work);
    const Result<> read_again = co_await read;
    if (!read_again) co_return read_again;
  }
  co_return answer.error();
}

Task<Result<>> WorkerReconciler::forget_leases(WorkerPtr worker,
                                               membership::Ownership::Claim claim) {
  // The worker Lease goes last: it says that the worker is cut off.
  for (const bool is_work : {true, false}) {
    const WorkerLeasePtr lease = (is_work ? worker->work : worker->lease).get();
    if (!lease) continue;
    kube::CallOptions options;
    if (auto error = deps_.membership.may_write(claim, options)) co_return *error;
    auto del = deps_.client.del(lease_path(lease->namespace_, lease->name),
                                controller::preconditions(lease->uid, lease->version), options);
    const Result<JsonDocument> answer = co_await del;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
    const WorkerLeasePtr& known = (is_work ? worker->work : worker->lease).get();
    if (known && known->uid == lease->uid) tracker_.lease_is_gone(worker, is_work);
  }
  co_return Unit{};
}

void WorkerReconciler::report_end(const Worker& worker,
                                  const reconciler::WorkerDecision& decision) {
  const bool cuts_off = decision.step == reconciler::WorkerStep::kCutOff;
  const std::string name = worker.pod_name.empty() ? worker.pod_uid : worker.pod_name;
  deps_.log.info(cuts_off ? "a worker was cut off" : "a worker was revoked",
                 {{"pool", worker.pool_key()}, {"worker", name}, {"reason", decision.reason}});
  const auto pool = deps_.caches.pools.get(worker.pool_key());
  std::int64_t attempts = 0;
  if (pool && worker.lease) {
    const KnownPool known = deps_.known.pool(worker.pool_key());
    attempts = known->book.workers().of(worker.lease->uid).attempts();
  }
  if (cuts_off) deps_.telemetry.cut_off(worker.namespace_, worker.pool_name, decision.reason);
  // The end of a pod that held nothing is no news: each scale-in has one.
  const bool is_usual = std::string(decision.reason) == "PodEnded" && attempts == 0;
  if (!pool || is_usual) return;
  events::ObjectReference reference;
  reference.kind = reconciler::kPoolKind;
  reference.namespace_ = worker.namespace_;
  reference.name = worker.pool_name;
  reference.uid = pool->uid;
  deps_.events.record(reference, /*warning=*/true, cuts_off ? "WorkerCutOff" : "WorkerRevoked",
                      cuts_off ? "CutOff" : "Revoke",
                      "worker " + name + (cuts_off ? " is cut off: " : " is revoked: ") +
                          decision.message + "; it had " + std::to_string(attempts) + " attempts");
}

// ---- Its work.

// What the cached record says. A job that is not in the cache is gone only if the cache is as new
// as the entry.
reconciler::RecordSays WorkerReconciler::record(const Worker& worker, const AttemptId& id,
                                                const std::string& job_name) {
  using reconciler::RecordSays;
  const std::string key = worker.namespace_ + "/" + job_name;
  const auto job = deps_.caches.jobs.get(key);
  if (!job || job->uid != id.job_uid) {
    const cache::Moment seen = deps_.reaches.jobs.since(worker.work->uid, worker.work->version);
    const bool is_gone = deps_.reaches.jobs.has(worker.namespace_, seen, worker.queue_key());
    return is_gone ? RecordSays::kOver : RecordSays::kUnknown;
  }
  return record_says(job->job, id, worker.lease->uid);
}

std::optional<Work> WorkerReconciler::next_work_of(const Worker& worker, bool& looks_again) {
  using reconciler::WorkerIs;
  if (!worker.is_readable() || worker.lease->is() == WorkerIs::kCutOff) return std::nullopt;
  const std::string& echoed = worker.lease->report.work_uid;
  if (!echoed.empty() && echoed != worker.work->uid) return std::nullopt;
  const Work& work = worker.work->work;
  const auto pool = deps_.known.find(worker.pool_key());
  const auto end = worker.pod ? worker.pod->end : std::nullopt;
  const std::optional<Work> mark = reconciler::marked(work, worker.duty.drains, end);
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

Task<Result<>> WorkerReconciler::write_work(WorkerPtr worker, Work next,
                                            membership::Ownership::Claim claim) {
  const WorkerLeasePtr lease = worker->work.get();
  const std::string lease_uid = worker->lease->uid;
  worker->duty.marking = worker->duty.marking || (next.draining && !lease->work.draining);
  auto task =
      put_lease(worker, lease, work_lease_body(*lease, label(claim), next, deps_.now()), claim);
  const Result<> done = co_await task;
  if (done || !done.error().maybe_applied) worker->duty.marking = false;
  if (!done) co_return done;
  const auto pool = deps_.known.find(worker->pool_key());
  for (const WorkEntry& entry : next.entries) {
    if (!pool || has_entry(lease->work, entry.id)) continue;
    const auto waited = pool->book.workers().of(lease_uid).waited(entry.id, deps_.loop.now());
    if (waited) deps_.telemetry.slot_taken(worker->namespace_, worker->pool_name, *waited);
  }
  co_return Unit{};
}

}  // namespace holdfast::pools
