// One reconcile of one job.
#include <algorithm>

#include "operator/jobs/job_controller.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::controller {
namespace {

// A watch that has not shown our own write after this time lags.
constexpr std::chrono::seconds kOwnWriteTimeout{5};
// The limit of all live reads of a verdict, because a shard's hand-over waits for them.
constexpr std::chrono::seconds kLiveLook{30};

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

}  // namespace

struct JobController::Live {
  bool read = false;
  std::string pod_name;
  std::shared_ptr<const CachedPod> pod;  // null: it does not exist
  HeartbeatPtr lease;                    // null: it does not exist
};

// A reconcile of a job. If it does not use its turn to create a pod, another job gets the turn.
class JobController::Look {
 public:
  Look(Creations& creations, const std::string& key) : creations_(creations), key_(key) {}
  ~Look() { creations_.looked_at(key_); }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  Creations& creations_;
  const std::string& key_;
};

bool JobController::lags(const std::string& ns, const JobMemory& memory) const {
  return memory.job_version > jobs_.version(ns) || memory.pod_version > pods_.version(ns) ||
         memory.lease_version > heartbeats_.leases().version(ns);
}

Duration JobController::held(const std::string& key, const std::string& ns, JobMemory& memory) {
  if (!lags(ns, memory)) {
    memory.held_since = SteadyTime{};
    return Duration::zero();
  }
  const SteadyTime now = loop_.now();
  if (memory.held_since == SteadyTime{}) memory.held_since = now;
  held_.insert(key);
  const Duration waited = now - memory.held_since;
  if (waited < kOwnWriteTimeout) return kOwnWriteTimeout - waited;
  memory.held_since = now;
  cache::Informer& behind = memory.job_version > jobs_.version(ns)   ? jobs_
                            : memory.pod_version > pods_.version(ns) ? pods_
                                                                     : heartbeats_.leases();
  behind.watch_lags(ns, {{"job", key}, {"seen", "our own write"}});
  return kOwnWriteTimeout;
}

std::shared_ptr<JobMemory> JobController::remember(const CachedJob& job) {
  std::shared_ptr<JobMemory>& memory = memory_[job.key()];
  if (!memory || memory->uid != job.uid) {
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
  if (found == memory_.end() || lags(namespace_of(key), *found->second)) return;
  const JobMemory& memory = *found->second;
  const auto job = std::static_pointer_cast<const CachedJob>(jobs_.store().get(key));
  // An intent that was sent may still be applied, or may not show yet.
  const bool is_same = job && job->uid == memory.uid;
  const bool is_intent =
      is_same &&
      std::any_of(memory.attempts.begin(), memory.attempts.end(), [&](const auto& entry) {
        const auto& [number, attempt] = entry;
        const reconciler::Status& status = job->job.status;
        if (attempt.intent_stamps.empty() || attempt.pod_existed) return false;
        if (number > status.attempt) return !is_terminal(status.phase);
        return number == status.attempt && status.phase == reconciler::Phase::kRunning;
      });
  if (is_intent || memory.creating()) return;
  memory_.erase(found);
}

Task<ReconcileResult> JobController::reconcile(std::string key) {
  const Look look(creations_, key);
  // It is reconciled when its namespace has been read.
  if (!readings_.read(namespace_of(key))) co_return ReconcileResult{};
  const kube::ObjectPtr before = jobs_.store().get(key);
  auto strangers = release_strangers(key, before ? before->uid : "");
  const Status released = co_await strangers;
  // The cache may have changed meanwhile, and held() judges its version.
  const auto job = std::static_pointer_cast<const CachedJob>(jobs_.store().get(key));
  if (!job) {
    memory_.erase(key);
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  const auto claim = claim_of(*job);
  if (!claim) {
    forget(key);
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  auto task = reconcile_claimed(key, job, *claim);
  ReconcileResult result = co_await task;
  if (!result.error && !released) result.error = released.error();
  co_return result;
}

Task<ReconcileResult> JobController::reconcile_claimed(std::string key,
                                                       std::shared_ptr<const CachedJob> job,
                                                       Ownership::Claim claim) {
  const std::shared_ptr<void> in_hand = membership_.keep(claim.shard);
  const auto memory = remember(*job);
  if (const Duration wait = held(key, job->namespace_, *memory); wait > Duration::zero()) {
    co_return again_after(wait);
  }
  // Record a refusal in the same reconcile as its intent. Between two reconciles the shard may be
  // handed over, and the next holder would treat the attempt as abandoned.
  auto current = job;
  while (true) {
    auto task = reconcile_job(current, claim, memory);
    const std::optional<ReconcileResult> done = co_await task;
    // By now a refusal is recorded, or could not be.
    if (!memory->creating()) memory->creation.reset();
    if (done) {
      if (is_terminal(current->job.status.phase) && !done->error) forget(key);
      co_return *done;
    }
    auto shown = own_writes_shown(current->namespace_, memory);
    co_await shown;
    current = std::static_pointer_cast<const CachedJob>(jobs_.store().get(key));
    const bool is_same = current && current->uid == memory->uid && membership_.holds(claim);
    if (!is_same || lags(current->namespace_, *memory)) {
      co_return again_after(std::chrono::milliseconds(1));
    }
  }
}

Task<void> JobController::own_writes_shown(std::string ns, std::shared_ptr<JobMemory> memory) {
  if (!lags(ns, *memory) || stopped_hard_) co_return;
  Callback<Unit> shown([&](Callback<Unit>::Done done) {
    const auto waiter = waiters_.insert(waiters_.end(), {ns, memory, std::move(done)});
    waiter->timer = loop_.call_after(kOwnWriteTimeout, [this, waiter] {
      loop_.post([done = waiter->shown] { done(Unit{}); });
      waiters_.erase(waiter);
    });
  });
  co_await shown;
}

void JobController::wake_waiters(bool all) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (!all && lags(waiter->namespace_, *waiter->memory)) {
      ++waiter;
      continue;
    }
    loop_.cancel(waiter->timer);
    loop_.post([done = waiter->shown] { done(Unit{}); });
    waiter = waiters_.erase(waiter);
  }
}

Task<std::optional<ReconcileResult>> JobController::reconcile_job(
    std::shared_ptr<const CachedJob> job, Ownership::Claim claim,
    std::shared_ptr<JobMemory> memory) {
  const Log log = log_.with({{"reconcile", std::to_string(++reconciles_)},
                             {"job", job->key()},
                             {"uid", job->uid},
                             {"attempt", std::to_string(job->job.status.attempt)}});
  Live live;
  while (true) {
    const reconciler::JobView seen = view(*job, *memory, live);
    const reconciler::Decision decision = reconciler::decide(seen, now());
    if (decision.confirm) {
      auto task = confirm(*job, *memory, live);
      const Status confirmed = co_await task;
      if (!confirmed) {
        // A due verdict waits for this read: retry it at least as often as a write.
        ReconcileResult result = failed(confirmed.error());
        result.wake_after = confirmed.error().retry_after.value_or(Duration::zero());
        co_return result;
      }
      continue;
    }
    if (decision.awaits_creation && !memory->creating()) creations_.wait(job->key());
    const bool creates = std::any_of(
        decision.writes.begin(), decision.writes.end(),
        [](const auto& write) { return std::holds_alternative<reconciler::CreatePod>(write); });
    const Creations::Slot slot = creates ? creations_.take(job->key()) : nullptr;
    auto task = executor_.perform(*job, claim, decision, *memory, log, [&](const auto& write) {
      begin_creation(job, claim, memory, slot, write, log);
    });
    const Result<Executor::Outcome> done = co_await task;
    if (!done) {
      if (done.error().code == ErrorCode::kNotFound) co_return again_after(decision.wake_after);
      if (reconciler::person_must_help(done.error().code)) {
        log.warn("a write was refused; it is tried again", {{"error", done.error().message}});
      } else {
        log.debug("a write failed; deciding again", {{"error", done.error().message}});
      }
    }
    if (done && done->decide_again) co_return std::nullopt;
    ReconcileResult result = again_after(decision.wake_after);
    result.priority = priority_of(*job);
    if (!done) result.error = done.error();
    if (done && done->later) result.error = done->later;
    co_return result;
  }
}

Task<Status> JobController::confirm(const CachedJob& job, JobMemory& memory, Live& live) {
  const auto wait = asked_to_wait(memory.looks_not_before, loop_.now());
  if (wait) co_return *wait;
  auto task = look(job, memory, live);
  const Status done = co_await task;
  if (!done) heed(done.error(), loop_.now(), memory.looks_not_before);
  co_return done;
}

Task<Status> JobController::look(const CachedJob& job, JobMemory& memory, Live& live) {
  const SteadyTime by = loop_.now() + kLiveLook;
  const reconciler::LastPod last = reconciler::last_pod(job.job.status);
  live.pod_name = last.name;
  const std::int64_t attempt = job.job.status.attempt;
  const auto pod_is_known = [&] {
    const AttemptMemory* const known = memory.find_attempt(attempt);
    return known && known->pod_existed;
  };
  const bool known_before = pod_is_known();
  auto get = client_.get(kube::object_path("/api/v1", "pods", job.namespace_, live.pod_name),
                         kube::live_look(by, loop_.now()));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (answer) {
    live.pod = std::static_pointer_cast<const CachedPod>(decode_pod(*answer));
    const bool was_the_jobs =
        live.pod && (live.pod->uid == last.uid ||
                     (known_before && live.pod->uid == memory.find_attempt(attempt)->pod_uid));
    if (live.pod && !live.pod->names(job.uid) && !was_the_jobs) live.pod.reset();
  }
  if (live.pod && !live.pod->pod.node_name.empty()) {
    auto task = nodes_.confirm(live.pod->pod.node_name, by);
    const Status confirmed = co_await task;
    if (!confirmed) co_return confirmed.error();
  }
  if (job.job.spec.heartbeat) {
    auto task = heartbeats_.confirm(job.namespace_, job.uid, by);
    const Result<HeartbeatPtr> lease = co_await task;
    if (!lease) co_return lease.error();
    live.lease = *lease;
  }
  // Last, because a pod can have come and gone unseen only if the job has changed since.
  auto get_job = client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                               job.namespace_, job.name),
                             kube::live_look(by, loop_.now()));
  const Result<JsonDocument> current = co_await get_job;
  if (!current) co_return current.error();
  kube::Object meta;
  if (!kube::decode_meta(*current, meta) || meta.uid != job.uid || meta.version != job.version) {
    if (meta.uid == job.uid) memory.job_version = std::max(memory.job_version, meta.version);
    co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
  }
  // The answer to a creation came meanwhile: the read without a pod is older than the pod.
  if (!live.pod && pod_is_known() != known_before) {
    co_return make_error(ErrorCode::kConflict, "the pod was created since it was looked for");
  }
  // The reads may have taken long, and the watch may be newer by now.
  const auto cached = std::static_pointer_cast<const CachedPod>(
      pods_.store().get(job.namespace_ + "/" + live.pod_name));
  if (live.pod && cached && cached->uid == live.pod->uid && cached->version > live.pod->version) {
    live.pod = cached;
  }
  live.read = true;
  co_return Unit{};
}

Task<Status> JobController::release_strangers(std::string key, std::string uid) {
  std::vector<kube::ObjectPtr> strangers;
  for (const kube::ObjectPtr& pod : pods_.store().by_index(kByJob, key)) {
    if (!as_pod(pod).pod.has_finalizer || as_pod(pod).names(uid)) continue;
    if (membership_.claim(as_pod(pod).job_uid())) strangers.push_back(pod);
  }
  if (strangers.empty()) co_return Unit{};
  // The cache of jobs may be behind the cache of pods: only a live read says that a job is gone.
  const std::string ns = namespace_of(key);
  auto get = client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns,
                                           key.substr(ns.size() + 1)));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  const std::string live_uid = answer ? string_at(at(*answer, "metadata"), "uid") : "";
  for (const kube::ObjectPtr& pod : strangers) {
    const auto claim = membership_.claim(as_pod(pod).job_uid());
    if (!claim || as_pod(pod).names(live_uid)) continue;
    const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
    auto task = executor_.release_pod(ns, pod->name, pod->uid, *claim, nullptr);
    const Status released = co_await task;
    if (!released) co_return released;
  }
  co_return Unit{};
}

reconciler::JobView JobController::view(const CachedJob& job, JobMemory& memory, const Live& live) {
  reconciler::JobView view;
  view.job = job.job;
  for (const kube::ObjectPtr& object : pods_.store().by_index(kByJob, job.key())) {
    const CachedPod& pod = as_pod(object);
    if (!pod.names(job.uid) || (live.read && pod.name == live.pod_name)) continue;
    view.pods.push_back(pod.pod);
  }
  if (live.pod) view.pods.push_back(live.pod->pod);
  // An index has no fixed order, and decisions must not depend on it.
  std::sort(view.pods.begin(), view.pods.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt < b.attempt : a.name < b.name;
  });
  for (const reconciler::PodView& pod : view.pods) memory.pods.see(pod, now());
  view.runs.resize(job.job.status.runs.size());
  view.observed.confirmed = live.read && view.runs.empty();
  observe(job, memory, live, view);
  return view;
}

HeartbeatPtr JobController::current_lease(const CachedJob& job, const Live& live) {
  return live.read ? live.lease : heartbeats_.get(job.namespace_, job.uid);
}

void JobController::observe(const CachedJob& job, JobMemory& memory, const Live& live,
                            reconciler::JobView& view) {
  const SteadyTime steady = loop_.now();
  const reconciler::Status& status = job.job.status;
  reconciler::Observed& observed = view.observed;
  observed.nonce = random_.next();
  observed.live_for = nodes_.pods_live_for(job.namespace_);
  observed.may_create = !memory.creating() && creations_.admits(job.key());
  if (!observed.may_create) observed.turn_wait = creations_.waits(job.key());
  const reconciler::LiveTime pods_time = nodes_.pods_time(job.namespace_);
  if (memory.last_write) observed.since_write = steady - *memory.last_write;
  for (reconciler::PodView& pod : view.pods) {
    if (pod.ended()) continue;
    if (pod.deletion && observed.live_for > Duration::zero()) {
      pod.going_for =
          job_windows_.going_for(job.namespace_, pod, job.job.spec.lost_after, pods_time);
    }
    if (pod.node_name.empty()) continue;
    observed.nodes[pod.node_name] = nodes_.observe(pod.node_name, job.job.spec.lost_after);
  }
  if (status.phase == reconciler::Phase::kCancelling) {
    observed.cancelling_for = job_windows_.cancelling_for(job, job.job.spec.lost_after, pods_time);
  }
  for (std::size_t place = 0; place < view.runs.size(); ++place) {
    observe_run(job, memory, live, view, place);
  }
}

void JobController::observe_lease(const CachedJob& job, JobMemory& memory, const Live& live,
                                  const reconciler::JobView& view, reconciler::RunView& run) {
  if (const HeartbeatPtr lease = job.job.spec.heartbeat ? current_lease(job, live) : nullptr) {
    run.lease = lease->lease;
    reconciler::LeaseObservation& observed = run.observed.lease;
    observed = heartbeats_.observe(*lease, job.job.spec.heartbeat->lease_duration);
    for (const reconciler::PodView& pod : view.pods) {
      const std::string holder = reconciler::holder_identity(pod);
      if (holder == lease->lease.granted && reconciler::worker_is_stopped(pod)) {
        memory.stopped_holder = holder;
      }
    }
    observed.lost_together = lost_together(job, *lease);
    observed.granted_stopped = memory.stopped_holder == lease->lease.granted;
  }
  if (!memory.lease_refusal.empty()) {
    run.observed.lease_refusal = reconciler::LeaseRefusal{
        memory.lease_refusal, std::max(Duration::zero(), memory.lease_retry_at - loop_.now())};
  }
}

void JobController::observe_run(const CachedJob& job, JobMemory& memory, const Live& live,
                                reconciler::JobView& view, std::size_t place) {
  const SteadyTime steady = loop_.now();
  const reconciler::Run& run = job.job.status.runs[place];
  reconciler::RunObserved& observed = view.runs[place].observed;
  observed.confirmed = live.read;
  observe_lease(job, memory, live, view, view.runs[place]);
  if (!run.open()) return;
  AttemptMemory& attempt = memory.at_attempt(run.attempt);
  observed.own_intent = attempt.has_intent(run.start_time);
  observed.took_over = attempt.inherited;
  observed.lease_asked = attempt.lease_asked;
  observed.pod_existed = attempt.pod_existed;
  observed.pod_uid = attempt.pod_uid;
  if (const reconciler::PodView* const pod = reconciler::current_pod(view, place)) {
    if (pod->owner_uid == job.uid) executor_.pod_exists(run.attempt, pod->uid, memory);
    observed.pod = memory.pods.of(*pod);
    if (pod->stands_still()) {
      observed.still_for =
          job_windows_.still_for(job.namespace_, *pod, nodes_.pods_time(job.namespace_));
    }
    return;
  }
  if (!attempt.bare_since) attempt.bare_since = steady;
  observed.no_pod_for = steady - *attempt.bare_since;
  // The replica that recorded an inherited attempt had its time while others held the shard.
  if (observed.took_over && run.start_time) {
    observed.no_pod_for = std::max(observed.no_pod_for, now() - *run.start_time);
  }
  observed.refusal = attempt.refusals.last(steady);
}

}  // namespace holdfast::controller
