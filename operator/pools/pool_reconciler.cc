#include "operator/pools/pool_reconciler.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "client/controller/own_writes.h"
#include "client/controller/writer.h"
#include "core/json.h"
#include "core/side_by_side.h"
#include "operator/jobs/writes.h"
#include "operator/pools/worker_facts.h"
#include "reconciler/names.h"
#include "reconciler/refusals.h"

namespace holdfast::pools {
namespace {

using reconciler::PoolStatus;

// A condition's reason, and the Event's.
constexpr const char* kCannotStart = "WorkersCannotStart";
constexpr std::chrono::seconds kStatusPause{1};  // between writes of counts alone
constexpr std::chrono::seconds kUnreadPause{1};  // an empty list is no event
// A name that is taken by a pod that no cache shows is left alone for so long.
constexpr std::chrono::minutes kTakenName{1};
// A new process has heard by then which jobs wait.
constexpr std::chrono::seconds kJobsAsk{10};
// Pods that are created or deleted at once.
constexpr std::size_t kPodsAtOnce = 4;

std::string pool_path(const CachedPool& pool) {
  return kube::object_path(reconciler::kJobGroupPath, reconciler::kPoolPlural, pool.namespace_,
                           pool.name);
}

// More than how much is done and waits.
bool changes_more_than_counts(const PoolStatus& a, const PoolStatus& b) {
  return a.workers.total != b.workers.total || a.holder != b.holder ||
         a.conditions != b.conditions || a.starts != b.starts ||
         a.observed_generation != b.observed_generation;
}

void wake_in(controller::ReconcileResult& result, std::optional<Duration> after) {
  if (after) result.wake_after = std::min(result.wake_after.value_or(*after), *after);
}

void fail(controller::ReconcileResult& result, const Result<>& done) {
  if (!done && !result.error) result.error = done.error();
}

}  // namespace

Task<controller::ReconcileResult> PoolReconciler::reconcile(std::string key) {
  const std::string ns = kube::namespace_of(key);
  const auto claim = deps_.membership.claim(ns);
  const KnownPool found = deps_.known.find(key);
  const PoolPtr cached = deps_.caches.pools.get(key);
  controller::ReconcileResult result;
  if (found) {
    wake_in(result, found->book.expire(deps_.loop.now()));
    deps_.looks.wake(key, *found);
  }
  // Before the lists are there, all workers and all of their jobs would be missing.
  if (claim && !deps_.caches.are_read(claim->shard, ns)) {
    wake_in(result, kUnreadPause);
    co_return result;
  }
  if (!claim || !cached) {
    if (found && claim) {
      auto look = look_for_missing(key, found, result);
      co_await look;
    }
    // What we wrote of a pool that exists counts until the cache shows it, whoever owns it meanwhile.
    if (found && !cached) deps_.known.forget_if_empty(key);
    co_return result;
  }
  const std::shared_ptr<void> in_hand = deps_.membership.keep(claim->shard);
  const KnownPool pool = deps_.known.pool(key);
  auto look = look_for_missing(key, pool, result);
  co_await look;
  auto act = carry_out_plan(cached, pool, *claim, result);
  co_await act;
  co_return result;
}

Task<void> PoolReconciler::look_for_missing(std::string key, KnownPool pool,
                                            controller::ReconcileResult& result) {
  auto read = missing_.read(key, pool);
  fail(result, co_await read);
  wake_in(result, missing_.look(key, *pool));
}

Task<void> PoolReconciler::carry_out_plan(PoolPtr cached, KnownPool pool,
                                          membership::Ownership::Claim claim,
                                          controller::ReconcileResult& result) {
  tracker_.forget_unseen_pods(*pool);
  if (std::exchange(pool->plans.tenure, claim.tenure) != claim.tenure) {
    pool->plans.since = deps_.loop.now();
  }
  const reconciler::PoolState state = state_of(*cached, *pool);
  reconciler::PoolPlan plan = plan_pool(state);
  // Now, because a pod that comes meanwhile was not counted: its name must be tried again.
  std::vector<std::string> names = free_names(*cached, *pool, plan.create);
  plan.status.holder = deps_.membership.self() + "/" + std::to_string(claim.tenure);
  wake_in(result, plan.wake_after);
  set_drains(*pool, plan.drain);
  if (plan.status != state.status) {
    const bool is_urgent = changes_more_than_counts(plan.status, state.status);
    auto keep = keep_status(cached, pool, plan.status, is_urgent, claim, result);
    co_await keep;
  }
  auto replaced = remove_pods(pool, std::move(plan.replace), claim, result);
  const Removed first = co_await replaced;
  names.resize(names.size() - std::min(names.size(), first.failed));
  // Another maxWorkers may hold by now.
  const bool is_old = cached->version <= pool->written.outdated;
  const bool creates = !names.empty() && !is_old && knows_pods(*cached, *pool, plan.status.holder);
  if (creates) {
    auto task = create_pods(cached, pool, std::move(names), std::move(plan.avoid), claim);
    fail(result, co_await task);
  }
  auto others = remove_pods(pool, std::move(plan.remove), claim, result);
  const Removed second = co_await others;
  if (creates || first.gone || second.gone) deps_.looks.look_at_pool_soon(cached->key());
}

void PoolReconciler::set_drains(Pool& pool, const std::vector<std::string>& pod_uids) {
  const std::set<std::string> drain(pod_uids.begin(), pod_uids.end());
  for (const auto& [uid, worker] : pool.workers) {
    const bool wants = drain.count(uid) != 0;
    if (std::exchange(worker->duty.drains, wants) == wants) continue;
    tracker_.refresh(*worker);
    deps_.looks.look_at(*worker);
  }
}

// The pool's last owner may have made pods that no cache shows yet. After our record nobody else
// makes any: so the first ones wait for a cache that is as new, and for a plan on it. A pool
// without an owner has none.
bool PoolReconciler::knows_pods(const CachedPool& cached, Pool& pool, const std::string& holder) {
  const bool is_written = cached.version < pool.written.version;
  if ((is_written ? pool.written.status : cached.status).holder != holder) return false;
  if (pool.owner.holder != holder) {
    pool.owner = {holder, deps_.reaches.pods.now(), false};
    pool.owner.knows_pods = is_written && cached.status.holder.empty();
  }
  if (pool.owner.knows_pods) return true;
  pool.owner.knows_pods = deps_.reaches.pods.has(cached.namespace_, pool.owner.since, cached.key());
  if (pool.owner.knows_pods) deps_.looks.look_at_pool_soon(cached.key());
  return false;
}

reconciler::PoolState PoolReconciler::state_of(const CachedPool& cached, Pool& pool) {
  if (pool.written.uid != cached.uid) {
    pool.written.uid = cached.uid;
    pool.written.version = 0;
    pool.written.outdated = 0;
    pool.owner = {};
    pool.refusal.reset();
  }
  const SteadyTime steady = deps_.loop.now();
  reconciler::PoolState state;
  state.name = cached.name;
  state.generation = cached.generation;
  state.deleting = cached.deleting;
  state.spec = cached.spec;
  state.hash = cached.hash;
  state.status = cached.version < pool.written.version ? pool.written.status : cached.status;
  state.waiting = pool.book.lines().wanted();
  state.waiting_alone = pool.book.lines().alone.wanted();
  state.oldest_since = pool.book.lines().oldest();
  state.refusal = pool.refusal;
  state.now = deps_.now();
  state.asking = std::max(Duration::zero(), pool.plans.since + kJobsAsk - steady);
  for (const auto& [uid, worker] : pool.workers) {
    if (!worker->pod || worker->pod->owner_uid != cached.uid) continue;
    const WorkerSlots& slots = pool.book.workers().of(worker->lease ? worker->lease->uid : "");
    state.workers.push_back(planned_worker(*worker, slots, steady, state.now));
  }
  return state;
}

// ---- Its pods.

Task<Result<std::string>> PoolReconciler::template_of(PoolPtr cached) {
  if (cached->pod_template) co_return *cached->pod_template;
  auto get = deps_.client.get(pool_path(*cached));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  if (string_at(holdfast::at(*answer, "metadata"), "uid") != cached->uid) {
    co_return make_error(ErrorCode::kConflict, "the pool has changed since it was cached");
  }
  co_return pools::template_of(*answer);
}

std::vector<std::string> PoolReconciler::free_names(const CachedPool& cached, const Pool& pool,
                                                    std::int64_t count) {
  std::set<std::string> taken;
  for (const auto& [uid, worker] : pool.workers) {
    if (worker->pod) taken.insert(worker->pod->name);
  }
  for (const auto& [name, until] : pool.taken_names) {
    if (deps_.loop.now() < until) taken.insert(name);
  }
  return free_worker_names(cached.name, cached.uid, taken, count);
}

Task<Result<>> PoolReconciler::create_pods(PoolPtr cached, KnownPool pool,
                                           std::vector<std::string> names,
                                           std::vector<std::string> avoid,
                                           membership::Ownership::Claim claim) {
  auto read = template_of(cached);
  const Result<std::string> pod_template = co_await read;
  if (!pod_template) co_return pod_template.error();
  const WorkerPool owner{cached->name, cached->namespace_, cached->uid,
                         cached->hash, cached->spec,       avoid};
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> creations;
  for (const std::string& name : names) {
    creations.emplace_back(
        [this, &name, &owner, &pod_template, &failure, &claim, &pool]() -> Task<void> {
          if (failure) co_return;
          auto create = create_pod(owner, *pod_template, name, *pool, claim);
          const Result<> done = co_await create;
          if (!done) failure = done.error();
        });
  }
  auto together = side_by_side(deps_.loop, kPodsAtOnce, std::move(creations));
  co_await together;
  if (!failure) co_return Unit{};
  // The plan puts it on record, with a back-off.
  if (failure->code == ErrorCode::kForbidden || failure->code == ErrorCode::kInvalid ||
      failure->code == ErrorCode::kTerminal) {
    pool->refusal = {failure->message, deps_.now()};
    co_return Unit{};
  }
  co_return *failure;
}

Task<Result<>> PoolReconciler::create_pod(const WorkerPool& owner, const std::string& pod_template,
                                          const std::string& name, Pool& pool,
                                          const membership::Ownership::Claim& claim) {
  const Result<std::string> body = worker_pod_body(owner, pod_template, name, agent_image_);
  kube::CallOptions options;
  const std::optional<Error> refused = deps_.membership.may_write(claim, options);
  if (!body) co_return body.error();
  if (refused) co_return *refused;
  auto post =
      deps_.client.post(kube::collection_path("/api/v1", "pods", owner.namespace_), *body, options);
  const Result<JsonDocument> answer = co_await post;
  if (answer) {
    pool.refusal.reset();
    auto pod = decode_worker_pod(*answer);
    if (pod) tracker_.show_pod(std::move(pod), /*is_own=*/true);
    co_return Unit{};
  }
  if (answer.error().code != ErrorCode::kAlreadyExists) co_return answer.error();
  auto read = read_pod(owner.namespace_, name, pool);
  co_return co_await read;
}

// If it is ours, it counts from now on. The watch may bring it after the next plan. As long as
// nobody knows whose it is, another name would be one worker too many.
Task<Result<>> PoolReconciler::read_pod(const std::string& ns, const std::string& name,
                                        Pool& pool) {
  auto get = deps_.client.get(jobs::pod_path(ns, name));
  const Result<JsonDocument> there = co_await get;
  if (!there) {
    if (there.error().code != ErrorCode::kNotFound) co_return there.error();
    co_return Unit{};
  }
  const SteadyTime now = deps_.loop.now();
  std::erase_if(pool.taken_names, [&](const auto& one) { return one.second <= now; });
  pool.taken_names[name] = now + kTakenName;
  auto pod = decode_worker_pod(*there);
  if (pod) tracker_.show_pod(std::move(pod), /*is_own=*/true);
  co_return Unit{};
}

// Pods that have just been tried in vain wait for their next turn.
Task<PoolReconciler::Removed> PoolReconciler::remove_pods(KnownPool pool,
                                                          std::vector<std::string> uids,
                                                          membership::Ownership::Claim claim,
                                                          controller::ReconcileResult& result) {
  Removed removed;
  std::vector<std::function<Task<void>()>> deletions;
  for (const std::string& uid : uids) {
    deletions.emplace_back([this, &uid, &pool, &claim, &result, &removed]() -> Task<void> {
      const auto found = pool->workers.find(uid);
      if (found == pool->workers.end()) co_return;
      // It has begun to serve meanwhile. So it stays for now, and is drained first.
      if (found->second->state() == reconciler::WorkerState::kLive) {
        ++removed.failed;
        co_return;
      }
      const WorkerPtr worker = found->second;
      if (const Duration left = worker->removal.next_try - deps_.loop.now();
          left > Duration::zero()) {
        wake_in(result, left);
        co_return;
      }
      auto task = remove_pod(worker, claim);
      const Result<> done = co_await task;
      fail(result, done);
      removed.gone += done ? 1 : 0;
      removed.failed += done ? 0 : 1;
    });
  }
  auto together = side_by_side(deps_.loop, kPodsAtOnce, std::move(deletions));
  co_await together;
  co_return removed;
}

Task<Result<>> PoolReconciler::remove_pod(WorkerPtr worker, membership::Ownership::Claim claim) {
  if (!worker->pod || worker->removal.accepted) co_return Unit{};
  kube::CallOptions options;
  if (auto error = deps_.membership.may_write(claim, options)) co_return *error;
  // From now on it gets no attempt: the request may take its time.
  worker->removal.accepted = true;
  tracker_.refresh(*worker);
  auto del = deps_.client.del(jobs::pod_path(worker->namespace_, worker->pod->name),
                              controller::preconditions(worker->pod_uid, std::nullopt), options);
  const Result<JsonDocument> answer = co_await del;
  // A conflict: the pod of this name is another one.
  const bool is_done = answer || answer.error().code == ErrorCode::kNotFound ||
                       answer.error().code == ErrorCode::kConflict;
  if (is_done) co_return Unit{};
  worker->removal.accepted = false;
  worker->removal.next_try = deps_.loop.now() + reconciler::retry_delay(worker->removal.failures++);
  tracker_.refresh(*worker);
  co_return answer.error();
}

// ---- Its status.

Task<void> PoolReconciler::keep_status(PoolPtr cached, KnownPool pool, PoolStatus status,
                                       bool is_urgent, membership::Ownership::Claim claim,
                                       controller::ReconcileResult& result) {
  const auto& last = pool->written.when;
  const Duration since = last ? deps_.loop.now() - *last : Duration::max();
  if (!is_urgent && since < kStatusPause) {
    wake_in(result, kStatusPause - since);
    co_return;
  }
  auto task = write_status(cached, pool, std::move(status), claim);
  const Result<> written = co_await task;
  if (!written && written.error().code == ErrorCode::kConflict) {
    pool->written.outdated = std::max(cached->version, pool->written.version);
  }
  fail(result, written);
}

Task<Result<>> PoolReconciler::write_status(PoolPtr cached, KnownPool pool, PoolStatus status,
                                            membership::Ownership::Claim claim) {
  kube::CallOptions options;
  if (auto error = deps_.membership.may_write(claim, options)) co_return *error;
  codecs::SharedTexts texts = cached->texts.value_or(codecs::SharedTexts{});
  if (!cached->texts) {
    auto get = deps_.client.get(pool_path(*cached));
    const Result<JsonDocument> live = co_await get;
    if (!live) co_return live.error();
    texts = decode_pool_texts(*live);
  }
  options.answer_with_metadata = true;
  const std::uint64_t version = std::max(cached->version, pool->written.version);
  auto put = deps_.client.put(pool_path(*cached) + "/status",
                              pool_status_body(*cached, version, texts, status), options);
  const Result<JsonDocument> answer = co_await put;
  pool->written.when = deps_.loop.now();
  if (!answer) {
    // A pool that is gone needs none. After a conflict the watch brings the newest one.
    if (answer.error().code == ErrorCode::kNotFound) co_return Unit{};
    co_return answer.error();
  }
  if (pool->written.uid != cached->uid) co_return Unit{};
  if (status.starts.failed > pool->written.status.starts.failed && status.starts.failed > 0) {
    report_failed_start(*cached, status);
  }
  pool->written.status = std::move(status);
  controller::raise(pool->written.version, *answer);
  co_return Unit{};
}

void PoolReconciler::report_failed_start(const CachedPool& pool, const PoolStatus& status) {
  const events::ObjectReference reference{reconciler::kJobApiVersion, reconciler::kPoolKind,
                                          pool.namespace_, pool.name, pool.uid};
  std::string why = "a worker did not start";
  for (const reconciler::Condition& condition : status.conditions) {
    if (condition.reason == kCannotStart && !condition.message.empty()) why = condition.message;
  }
  deps_.events.record(reference, /*warning=*/true, kCannotStart, "StartWorker", why);
}

}  // namespace holdfast::pools
