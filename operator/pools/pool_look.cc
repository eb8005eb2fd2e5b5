// One reconcile of one pool: its size and its status.
#include <algorithm>
#include <set>
#include <utility>

#include "client/kube/lease_resource.h"
#include "core/json.h"
#include "core/side_by_side.h"
#include "operator/jobs/job_controller.h"
#include "operator/jobs/writes.h"
#include "operator/pools/pool_controller.h"
#include "reconciler/names.h"
#include "reconciler/refusals.h"
#include "reconciler/run/pod_times.h"

namespace holdfast::controller {
namespace {

using reconciler::PoolStatus;

// A condition's reason, and the Event's.
constexpr const char* kCannotStart = "WorkersCannotStart";
// Counts alone are written at most this often.
constexpr std::chrono::seconds kStatusPause{1};
// An empty list is no event.
constexpr std::chrono::seconds kUnreadPause{1};
// A name that is taken by a pod that no cache shows is left alone for so long.
constexpr std::chrono::minutes kTakenName{1};
// A Lease may be there that no cache shows. It cannot come back, so one read is enough.
constexpr std::chrono::seconds kReadMissing{5};
// Jobs whose worker is missing are looked at this often, until their records have moved on.
constexpr std::chrono::seconds kMissingPause{5};
// A new process has heard by then which jobs wait.
constexpr std::chrono::seconds kJobsAsk{10};
// Pods that are created or deleted at once.
constexpr std::size_t kPodsAtOnce = 4;

std::string pool_path(const CachedPool& pool) {
  return kube::object_path(reconciler::kJobGroupPath, reconciler::kPoolPlural, pool.namespace_,
                           pool.name);
}

// More than how much is done and waits.
bool is_urgent(const PoolStatus& a, const PoolStatus& b) {
  return a.workers.total != b.workers.total || a.holder != b.holder ||
         a.conditions != b.conditions || a.starts != b.starts ||
         a.observed_generation != b.observed_generation;
}

std::string exactly(const std::string& uid) {
  return Json({{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", "Background"},
               {"preconditions", {{"uid", uid}}}})
      .dump();
}

void wake_in(ReconcileResult& result, std::optional<Duration> after) {
  if (after) result.wake_after = std::min(result.wake_after.value_or(*after), *after);
}

void fail(ReconcileResult& result, const Status& done) {
  if (!done && !result.error) result.error = done.error();
}

}  // namespace

Task<ReconcileResult> PoolController::reconcile_pool(std::string key) {
  const std::string ns = namespace_of(key);
  const auto claim = membership_.claim(ns);
  const auto found = find_pool(key);
  const auto spec = cached(key);
  ReconcileResult result;
  if (found) {
    wake_in(result, found->book.expire(loop_.now()));
    wake(key, *found);
  }
  if (!claim || !spec) {
    if (found && claim) {
      auto task = read_missing(key, found);
      fail(result, co_await task);
      wake_in(result, look_for_missing(key, *found));
    }
    if (found && found->book.empty() && found->workers.empty()) books_.erase(key);
    co_return result;
  }
  // Before the first lists are there, all workers would be missing.
  const bool is_read = pods_->version(ns) > 0 && leases_->version(ns) > 0 && jobs_->version(ns) > 0;
  if (!is_read) {
    wake_in(result, kUnreadPause);
    co_return result;
  }
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  const std::shared_ptr<Pool> pool = pool_of(key);
  auto reads = read_missing(key, pool);
  fail(result, co_await reads);
  wake_in(result, look_for_missing(key, *pool));
  forget_unseen_pods(*pool);
  if (std::exchange(pool->tenure, claim->tenure) != claim->tenure) {
    pool->planned_since = loop_.now();
  }
  const reconciler::PoolState state = state_of(*spec, *pool);
  reconciler::PoolPlan plan = plan_pool(state);
  // Now, because a pod that comes meanwhile was not counted: its name must be tried again.
  std::vector<std::string> names = free_names(*spec, *pool, plan.create);
  plan.status.holder = membership_.self() + "/" + std::to_string(claim->tenure);
  wake_in(result, plan.wake_after);
  const std::set<std::string> drain(plan.drain.begin(), plan.drain.end());
  for (const auto& [uid, worker] : pool->workers) {
    const bool wants = drain.count(uid) != 0;
    if (std::exchange(worker->wants_drain, wants) == wants) continue;
    refresh(*worker);
    look_at_worker(*worker);
  }
  if (plan.status != state.status) {
    const Duration since = pool->last_write ? loop_.now() - *pool->last_write : Duration::max();
    if (is_urgent(plan.status, state.status) || since >= kStatusPause) {
      auto task = write_status(spec, pool, plan.status, *claim);
      const Status written = co_await task;
      if (!written && written.error().code == ErrorCode::kConflict) {
        pool->outdated = std::max(spec->version, pool->written_version);
      }
      fail(result, written);
    } else {
      wake_in(result, kStatusPause - since);
    }
  }
  auto replaced = remove_pods(pool, std::move(plan.replace), *claim, result);
  const Removed first = co_await replaced;
  names.resize(names.size() - std::min(names.size(), first.failed));
  // Another maxWorkers may hold by now.
  const bool is_old = spec->version <= pool->outdated;
  const bool creates = !names.empty() && !is_old && knows_pods(*spec, *pool, plan.status.holder);
  if (creates) {
    auto task = create_pods(spec, pool, std::move(names), *claim);
    fail(result, co_await task);
  }
  auto others = remove_pods(pool, std::move(plan.remove), *claim, result);
  const Removed second = co_await others;
  if (creates || first.gone || second.gone) look_at_pool_soon(key);
  co_return result;
}

// The pool's last owner may have made pods that no cache shows yet. After our record nobody else
// makes any: so the first ones wait for a cache that is as new, and for a plan on it. A pool
// without an owner has none.
bool PoolController::knows_pods(const CachedPool& cached, Pool& pool, const std::string& holder) {
  const bool is_written = cached.version < pool.written_version;
  if ((is_written ? pool.written : cached.status).holder != holder) return false;
  if (pool.owner.holder != holder) {
    pool.owner = {holder, pods_reach_.now(), false};
    pool.owner.knows_pods = is_written && cached.status.holder.empty();
  }
  if (pool.owner.knows_pods) return true;
  pool.owner.knows_pods = pods_reach_.has(cached.namespace_, pool.owner.since, cached.key());
  if (pool.owner.knows_pods) look_at_pool_soon(cached.key());
  return false;
}

// Somebody may have taken the label off a Lease: no cache shows it, and its agent renews it.
// Nothing counts as lost before all Leases of the namespace were read. One that is found is
// revoked.
Task<Status> PoolController::read_missing(std::string key, std::shared_ptr<Pool> pool) {
  const std::string ns = namespace_of(key);
  std::set<std::string> wanted;
  for (const std::string& uid : pool->book.workers().missing()) {
    const bool is_due = times_.missing_for(ns + "/" + uid, loop_.now()) >= kReadMissing;
    if (is_due && pool->known_gone.count(uid) == 0) wanted.insert(uid);
  }
  if (wanted.empty()) co_return Unit{};
  auto get = client_.get(kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, ns));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  std::set<std::string> found;
  for (const JsonView item : holdfast::at(*answer, "items")) {
    const std::string uid = string_at(holdfast::at(item, "metadata"), "uid");
    if (wanted.count(uid) == 0) continue;
    found.insert(uid);
    const auto lease = decode_worker_lease(item);
    if (!lease) continue;
    auto ours = std::make_shared<CachedWorkerLease>(*lease);
    ours->pool_name = key.substr(ns.size() + 1);
    show_lease(std::move(ours), /*is_own=*/true);
  }
  for (const std::string& uid : wanted) {
    if (found.count(uid) == 0) pool->known_gone.insert(uid);
  }
  co_return Unit{};
}

// The places of a worker without a Lease are empty after its agent's deadlines.
std::optional<Duration> PoolController::look_for_missing(const std::string& key, Pool& pool) {
  std::optional<Duration> next;
  const std::string ns = namespace_of(key);
  const std::vector<std::string> missing = pool.book.workers().missing();
  const auto is_there = [&](const std::string& uid) {
    return std::find(missing.begin(), missing.end(), uid) == missing.end();
  };
  std::erase_if(pool.told_missing, is_there);
  std::erase_if(pool.known_gone, [&](const std::string& uid) {
    if (is_there(uid)) times_.found(ns + "/" + uid);
    return is_there(uid);
  });
  for (const std::string& uid : missing) {
    const bool has_told = pool.told_missing.count(uid) != 0;
    const WorkerSlots::Places& open = pool.book.workers().of(uid).open;
    if (has_told && open.empty()) continue;
    const bool is_read = pool.known_gone.count(uid) > 0;
    const Duration limit = is_read ? pool.book.workers().of(uid).lease_duration() : kReadMissing;
    const Duration left = limit - times_.missing_for(ns + "/" + uid, loop_.now());
    const Duration wait = left > Duration::zero() ? left : Duration(kMissingPause);
    next = std::min(next.value_or(wait), wait);
    if (left > Duration::zero() || !is_read) continue;
    pool.told_missing.insert(uid);
    const auto look = [&](const WorkerSlots::Places& places) {
      for (const auto& [id, place] : places) look_at_(ns + "/" + place.job_name, Priority::kFresh);
    };
    look(open);
    if (!has_told) look(pool.book.workers().of(uid).closed);
  }
  return next;
}

reconciler::PoolState PoolController::state_of(const CachedPool& cached, Pool& pool) {
  if (pool.uid != cached.uid) {
    pool.uid = cached.uid;
    pool.written_version = 0;
    pool.owner = {};
    pool.outdated = 0;
    pool.refusal.reset();
  }
  reconciler::PoolState state;
  state.name = cached.name;
  state.generation = cached.generation;
  state.deleting = cached.deleting;
  state.spec = cached.spec;
  state.hash = cached.hash;
  state.status = cached.version < pool.written_version ? pool.written : cached.status;
  state.waiting = pool.book.lines().wanted();
  state.waiting_alone = pool.book.lines().alone.wanted();
  if (const auto since = pool.book.lines().oldest()) state.oldest_since = since;
  state.refusal = pool.refusal;
  state.now = now();
  state.asking = std::max(Duration::zero(), pool.planned_since + kJobsAsk - loop_.now());
  for (const auto& [uid, worker] : pool.workers) {
    if (!worker->pod || worker->pod->owner_uid != cached.uid) continue;
    reconciler::PoolWorker seen;
    seen.pod = worker->pod->worker;
    if (worker->pod->placement == reconciler::Placement::kBound) {
      seen.bound = reconciler::placed_since(seen.pod.created, worker->pod->placed,
                                            worker->sightings, state.now);
    }
    seen.state = worker->state();
    seen.pod.deleting = seen.pod.deleting || worker->removed;
    seen.stays = worker->failed_removals > 0;
    seen.marking = worker->marking;
    if (worker->lease) {
      seen.served = !worker->lease->report.life.empty();
      seen.attempts = pool.book.workers().of(worker->lease->uid).attempts();
      seen.kept = pool.book.workers().of(worker->lease->uid).is_kept();
      const bool is_known =
          worker->is_readable() || (!worker->work && worker->lease->error.empty());
      if (!is_known) seen.attempts = std::max<std::int64_t>(seen.attempts, 1);
    }
    seen.idle_for = worker->idle_for(loop_.now(), state.now);
    state.workers.push_back(std::move(seen));
  }
  return state;
}

// ---- Its pods.

Task<Result<std::string>> PoolController::template_of(PoolPtr cached) {
  if (cached->pod_template) co_return *cached->pod_template;
  auto get = client_.get(pool_path(*cached));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  if (string_at(holdfast::at(*answer, "metadata"), "uid") != cached->uid) {
    co_return make_error(ErrorCode::kConflict, "the pool has changed since it was cached");
  }
  co_return controller::template_of(*answer);
}

std::vector<std::string> PoolController::free_names(const CachedPool& cached, const Pool& pool,
                                                    std::int64_t count) {
  std::set<std::string> taken;
  for (const auto& [uid, worker] : pool.workers) {
    if (worker->pod) taken.insert(worker->pod->name);
  }
  for (const auto& [name, until] : pool.taken_names) {
    if (loop_.now() < until) taken.insert(name);
  }
  return free_worker_names(cached.name, cached.uid, taken, count);
}

Task<Status> PoolController::create_pods(PoolPtr cached, std::shared_ptr<Pool> pool,
                                         std::vector<std::string> names, Ownership::Claim claim) {
  auto read = template_of(cached);
  const Result<std::string> pod_template = co_await read;
  if (!pod_template) co_return pod_template.error();
  const WorkerPool owner{cached->name, cached->namespace_, cached->uid, cached->hash, cached->spec};
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> creations;
  for (const std::string& name : names) {
    creations.emplace_back(
        [this, name, &owner, &pod_template, &failure, &claim, &pool]() -> Task<void> {
          if (failure) co_return;
          const Result<std::string> body =
              worker_pod_body(owner, *pod_template, name, config_.agent_image);
          kube::CallOptions options;
          std::optional<Error> refused = membership_.may_write(claim, options);
          if (!body) refused = body.error();
          if (!refused) {
            auto post = client_.post(kube::collection_path("/api/v1", "pods", owner.namespace_),
                                     *body, options);
            const Result<JsonDocument> answer = co_await post;
            if (answer) {
              pool->refusal.reset();
              auto pod = decode_worker_pod(*answer);
              if (pod) show_pod(std::move(pod), /*is_own=*/true);
              co_return;
            }
            if (answer.error().code == ErrorCode::kAlreadyExists) {
              // If it is ours, it counts from now on. The watch may bring it after the next plan. As
              // long as nobody knows whose it is, another name would be one worker too many.
              auto get = client_.get(kube::object_path("/api/v1", "pods", owner.namespace_, name));
              const Result<JsonDocument> there = co_await get;
              if (!there && there.error().code != ErrorCode::kNotFound) failure = there.error();
              if (!there) co_return;
              std::erase_if(pool->taken_names,
                            [&](const auto& one) { return one.second <= loop_.now(); });
              pool->taken_names[name] = loop_.now() + kTakenName;
              auto pod = decode_worker_pod(*there);
              if (pod) show_pod(std::move(pod), /*is_own=*/true);
              co_return;
            }
            refused = answer.error();
          }
          failure = refused;
        });
  }
  auto together = side_by_side(loop_, kPodsAtOnce, std::move(creations));
  co_await together;
  if (!failure) co_return Unit{};
  // The plan puts it on record, with a back-off.
  if (failure->code == ErrorCode::kForbidden || failure->code == ErrorCode::kInvalid ||
      failure->code == ErrorCode::kTerminal) {
    pool->refusal = {failure->message, now()};
    co_return Unit{};
  }
  co_return *failure;
}

// Pods that have just been tried in vain wait for their next turn.
Task<PoolController::Removed> PoolController::remove_pods(std::shared_ptr<Pool> pool,
                                                          std::vector<std::string> uids,
                                                          Ownership::Claim claim,
                                                          ReconcileResult& result) {
  Removed removed;
  std::vector<std::function<Task<void>()>> deletions;
  for (const std::string& uid : uids) {
    deletions.emplace_back([this, &uid, &pool, &claim, &result, &removed]() -> Task<void> {
      const auto found = pool->workers.find(uid);
      // It may have begun to serve meanwhile: then it drains first.
      const bool is_there = found != pool->workers.end();
      if (!is_there || found->second->state() == reconciler::WorkerState::kLive) co_return;
      const WorkerPtr worker = found->second;
      if (const Duration left = worker->remove_at - loop_.now(); left > Duration::zero()) {
        wake_in(result, left);
        co_return;
      }
      auto task = remove_pod(worker, claim);
      const Status done = co_await task;
      fail(result, done);
      removed.gone += done ? 1 : 0;
      removed.failed += done ? 0 : 1;
    });
  }
  auto together = side_by_side(loop_, kPodsAtOnce, std::move(deletions));
  co_await together;
  co_return removed;
}

Task<Status> PoolController::remove_pod(WorkerPtr worker, Ownership::Claim claim) {
  if (!worker->pod || worker->removed) co_return Unit{};
  kube::CallOptions options;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  // From now on it gets no attempt: the request may take its time.
  worker->removed = true;
  refresh(*worker);
  auto del = client_.del(pod_path(worker->namespace_, worker->pod->name), exactly(worker->pod_uid),
                         options);
  const Result<JsonDocument> answer = co_await del;
  // A conflict: the pod of this name is another one.
  const bool is_done = answer || answer.error().code == ErrorCode::kNotFound ||
                       answer.error().code == ErrorCode::kConflict;
  if (is_done) co_return Unit{};
  worker->removed = false;
  worker->remove_at = loop_.now() + reconciler::retry_delay(worker->failed_removals++);
  refresh(*worker);
  co_return answer.error();
}

// ---- Its status.

Task<Status> PoolController::write_status(PoolPtr cached, std::shared_ptr<Pool> pool,
                                          PoolStatus status, Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  SharedTexts texts = cached->texts.value_or(SharedTexts{});
  if (!cached->texts) {
    auto get = client_.get(pool_path(*cached));
    const Result<JsonDocument> live = co_await get;
    if (!live) co_return live.error();
    texts = decode_pool_texts(*live);
  }
  options.answer_with_metadata = true;
  const std::uint64_t version = std::max(cached->version, pool->written_version);
  auto put = client_.put(pool_path(*cached) + "/status",
                         pool_status_body(*cached, version, texts, status), options);
  const Result<JsonDocument> answer = co_await put;
  pool->last_write = loop_.now();
  if (!answer) {
    // A pool that is gone needs none. After a conflict the watch brings the newest one.
    if (answer.error().code == ErrorCode::kNotFound) co_return Unit{};
    co_return answer.error();
  }
  if (pool->uid != cached->uid) co_return Unit{};
  if (status.starts.failed > pool->written.starts.failed && status.starts.failed > 0) {
    tell_failed_start(*cached, status);
  }
  pool->written = std::move(status);
  raise(pool->written_version, *answer);
  co_return Unit{};
}

void PoolController::tell_failed_start(const CachedPool& pool, const PoolStatus& status) {
  ObjectReference reference;
  reference.kind = reconciler::kPoolKind;
  reference.namespace_ = pool.namespace_;
  reference.name = pool.name;
  reference.uid = pool.uid;
  std::string why = "a worker did not start";
  for (const reconciler::Condition& condition : status.conditions) {
    if (condition.reason == kCannotStart && !condition.message.empty()) why = condition.message;
  }
  events_.record(reference, /*warning=*/true, kCannotStart, "StartWorker", why);
}

}  // namespace holdfast::controller
