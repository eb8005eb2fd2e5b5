#include "operator/jobs/job_controller.h"

#include <algorithm>

#include "core/json.h"
#include "reconciler/names.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::controller {

JobController::JobController(Dependencies dependencies, Config config,
                             ReconcilePool::Metrics metrics)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      random_(dependencies.random),
      log_(dependencies.log),
      telemetry_(dependencies.telemetry),
      config_(std::move(config)),
      jobs_(dependencies.jobs),
      pods_(dependencies.pods),
      nodes_(dependencies.nodes),
      heartbeats_(dependencies.heartbeats),
      membership_(dependencies.membership),
      readings_(dependencies.readings),
      pod_shards_(dependencies.pod_shards),
      permits_(dependencies.permits),
      places_(dependencies.places),
      courier_(dependencies.courier),
      caches_(jobs_, pods_, heartbeats_, membership_, readings_, pod_shards_),
      silences_(loop_, client_, caches_, nodes_),
      lost_holders_(loop_, client_, caches_),
      executor_(loop_, client_, membership_, telemetry_, dependencies.events, config_.agent_image),
      namespace_looks_(loop_,
                       [this](std::string ns) { return executor_.namespace_goes(std::move(ns)); }),
      pool_(
          {loop_, log_}, config_.pool,
          [this](std::string key) { return reconcile(std::move(key)); }, std::move(metrics)),
      creations_(loop_, config_.pool.workers,
                 [this](const std::string& key) { pool_.queue().add(key, Priority::kStart); }),
      strays_(stray_pods(), config_.namespaces),
      own_writes_(
          loop_, [this](const std::string& key) { return shows_writes_for(key); },
          [this](const std::string& key) { pool_.queue().add(key); }) {
  jobs_.on_change([this](const auto& change) { on_job(change); });
  pods_.on_change([this](const auto& change) { on_pod(change); });
  nodes_.on_node_change([this](const std::string& node) { on_node(node); });
  heartbeats_.on_change(
      [this](const auto& before, const auto& after) { on_heartbeat(before, after); });
  silences_.keep_windows(dependencies.windows);
}

JobController::~JobController() {
  loop_.cancel(limit_timer_);
  loop_.cancel(grace_timer_);
  loop_.cancel(hand_over_timer_);
  // The release of a kept shard calls back into this controller, so release them all first.
  for (auto& [key, memory] : memory_) {
    for (auto& [number, attempt] : memory->attempts) attempt.creation.reset();
  }
}

void JobController::begin() {
  started_ = true;
  pods_.for_each([this](const PodPtr& pod) { look_at_node(*pod); });
  pool_.start();
  resync_timer_ = loop_.call_after(config_.resync, [this] { resync(); });
}

void JobController::resync() {
  jobs_.for_each([this](const JobPtr& job) { pool_.queue().add(job->key(), Priority::kLow); });
  pods_.for_each([this](const PodPtr& pod) { look_at_job_of(*pod, Priority::kLow); });
  resync_timer_ = loop_.call_after(config_.resync, [this] { resync(); });
}

StrayPods::Dependencies JobController::stray_pods() {
  return {
      loop_,
      client_,
      log_,
      [this](int shard) { return membership_.claim_shard(shard); },
      [this](const std::string& namespace_, const std::string& name) {
        return pods_.get(namespace_ + "/" + name) != nullptr;
      },
      [this](std::string namespace_, std::string name, std::string uid, Ownership::Claim claim) {
        return executor_.release_pod(std::move(namespace_), std::move(name), std::move(uid), claim,
                                     nullptr);
      },
      [this](std::string namespace_, std::string name, std::string uid, std::string job_name,
             std::string job_uid, Ownership::Claim claim) {
        return executor_.relabel_pod(std::move(namespace_), std::move(name), std::move(uid),
                                     std::move(job_name), std::move(job_uid), claim);
      }};
}

// The job is gone. Its pods that the cache does not show may have our finalizer.
void JobController::look_for_strays_of(const CachedJob& job) {
  if (!membership_.holds_shard(shard_of(job))) return;
  std::vector<std::string> pods;
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.at_worker() && !run.pod_name.empty()) pods.push_back(run.pod_name);
  }
  strays_.look_for(shard_of(job), job.namespace_, std::move(pods));
}

void JobController::stop(std::function<void()> idle) {
  stopping_ = true;
  strays_.stop();
  idle_ = std::move(idle);
  loop_.cancel(resync_timer_);
  limit_timer_ = loop_.call_after(kHandOverLimit, [this] { end_work(); });
  if (!creating_.empty()) hand_over_soon();
  end_when_handed_over();
}

// A reconcile in flight may begin a creation, and one that has ended puts its refusal on record in
// the next reconcile. A reconcile that hangs is not waited for.
void JobController::end_when_handed_over() {
  if (handed_over_) return;
  if (!creating_.empty()) return loop_.cancel(std::exchange(grace_timer_, 0));
  if (grace_timer_ == 0) {
    grace_timer_ = loop_.call_after(kStopGrace, [this] { end_work(); });
  }
  pool_.when_idle([this] {
    if (creating_.empty()) end_work();
  });
}

void JobController::end_work() {
  if (std::exchange(handed_over_, true)) return;
  loop_.cancel(std::exchange(limit_timer_, 0));
  loop_.cancel(std::exchange(grace_timer_, 0));
  loop_.cancel(std::exchange(hand_over_timer_, 0));
  grace_timer_ = loop_.call_after(kStopGrace, [this] {
    own_writes_.stop();
    client_.wind_down();
  });
  to_end_ = 2;
  pool_.stop([this] { one_ended(); });
  creations_.stop([this] { one_ended(); });
}

void JobController::one_ended() {
  if (--to_end_ > 0) return;
  loop_.cancel(grace_timer_);
  idle_();
}

// ---- Shards come and go.

void JobController::lost(int shard) {
  gained_.erase(shard);
  gained_at_.erase(shard);
  cancel_creations([shard](int of) { return of == shard; }, /*hands_over=*/false);
  // What has ended is somebody else's to put on record.
  const auto creating = creating_;
  for (const std::shared_ptr<JobMemory>& memory : creating) {
    memory->forget_ended_creations(
        [shard](const Creation& creation) { return creation.claim.shard == shard; });
    settle_creations(memory);
  }
}

// Many shards come together: their jobs are looked at in one go.
void JobController::look_at_all(int shard) {
  gained_at_.try_emplace(shard, loop_.now());
  if (shard == StrayPods::kWalkersShard) strays_.walk_soon();
  if (!gained_.insert(shard).second || gained_.size() > 1) return;
  loop_.post([this] { begin_gained(); });
}

void JobController::begin_gained() {
  const std::set<int> gained = std::exchange(gained_, {});
  look_at_all([&](const std::string&, int shard) { return gained.count(shard) != 0; });
}

void JobController::begin_namespace(const std::string& watched) {
  look_at_all([&](const std::string& namespace_, int shard) {
    return (watched.empty() || namespace_ == watched) && membership_.holds_shard(shard);
  });
}

void JobController::begin_pods(const std::set<int>& shards, const std::string& watched) {
  look_at_all([&](const std::string& namespace_, int shard) {
    return shards.count(shard) != 0 && (watched.empty() || namespace_ == watched) &&
           membership_.holds_shard(shard);
  });
}

void JobController::look_at_all(const Gained& is_gained) {
  jobs_.for_each([&](const JobPtr& cached) {
    const CachedJob& job = *cached;
    if (!is_gained(job.namespace_, shard_of(job))) return;
    for (const reconciler::Run& run : job.job.status.runs) {
      if (run.open()) remember(job)->attempts[run.attempt].inherited = true;
    }
    for (const auto& one : reconciler::podless_attempts(job.job.status, now())) {
      const auto gained = gained_at_.find(shard_of(job));
      const bool is_new = gained == gained_at_.end();
      Duration left =
          reconciler::kCreationLimit - (is_new ? Duration::zero() : loop_.now() - gained->second);
      if (one.closed) left = std::min(left, *one.closed + reconciler::kCreationLimit - now());
      remember(job)->attempts[one.attempt].inherit(loop_.now() + left);
    }
    pool_.queue().add(job.key(), Priority::kLow);
  });
  pods_.for_each([&](const PodPtr& pod) {
    if (is_gained(pod->namespace_, shard_of(*pod))) look_at_job_of(*pod, Priority::kLow);
  });
}

// ---- What the caches tell.

void JobController::look_at_job_of(const CachedPod& pod, Priority priority) {
  if (const std::string key = look_key(pod); !key.empty()) pool_.queue().add(key, priority);
}

void JobController::on_job(const cache::View<CachedJob>::Change& change) {
  const std::string key = change.latest().key();
  const Priority priority = change.after ? priority_of(*change.after) : Priority::kFresh;
  pool_.queue().add(key, change.initial ? Priority::kLow : priority);
  if (change.after) {
    const std::string& uid = change.after->uid;
    const CachedJob& job = *change.after;
    census_.put(uid, shard_of(job), job.namespace_, job.job.status);
    heartbeats_.look_again_at_all(change.after->namespace_, change.after->name);
    silences_.see(job);
  } else {
    silences_.gone(*change.before);
    look_for_strays_of(*change.before);
    census_.erase(change.before->uid);
    heartbeats_.look_again_at_all(change.before->namespace_, change.before->name);
  }
}

void JobController::on_pod(const cache::View<CachedPod>::Change& change) {
  const CachedPod& pod = change.latest();
  const std::string key = job_key(pod);
  look_at_job_of(pod, change.initial ? Priority::kLow : Priority::kFresh);
  const auto job = jobs_.get(key);
  const reconciler::Run* const run =
      job && job->uid == pod.job_uid() ? job->job.status.run_of_pod(pod.name) : nullptr;
  if (run && job->job.spec.heartbeat) {
    heartbeats_.look_again(pod.namespace_, lease_name(job->job, run->index));
  }
  remember_pod(key, pod, change.after != nullptr);
  if (change.after) {
    silences_.see(pod);
    if (started_) look_at_node(pod);
  } else {
    silences_.gone(pod);
  }
  if (!change.before || !change.after) return;
  const CachedPod& before = *change.before;
  if (before.job_name != pod.job_name) look_at_job_of(before);
  if (before.pod.ended() || !pod.pod.ended()) return;
  // It just ended: does its attempt still count?
  if (!job || job->uid != pod.job_uid()) return;
  if (!membership_.holds(reconciler::shard_key(job->job))) return;
  if (run && run->open()) return;
  telemetry_.fenced_outcome(to_string(pod.pod.phase));
  log_.info("a fenced pod ended; its outcome does not count",
            {{"job", key},
             {"uid", job->uid},
             {"attempt", std::to_string(pod.pod.attempt)},
             {"pod", pod.name},
             {"phase", to_string(pod.pod.phase)}});
}

// A reconcile may still wait for the answer to its creation. Whatever the answer says, an attempt
// whose pod has existed gets no second pod. The mark shows that the pod is the attempt's.
void JobController::remember_pod(const std::string& key, const CachedPod& pod, bool is_there) {
  const auto found = memory_.find(key);
  if (found == memory_.end() || found->second->uid != pod.pod.owner_uid) return;
  JobMemory& memory = *found->second;
  const auto job = jobs_.get(key);
  const std::int64_t number = reconciler::attempt_in_name(pod.job_name, memory.uid, pod.name);
  if (job && job->uid == memory.uid) memory.remember_highest(job->job.status, number);
  const reconciler::Run* const run =
      job && job->uid == memory.uid ? job->job.status.run_of_pod(pod.name) : nullptr;
  const bool is_on_record = run && run->open() && run->start_time == pod.pod.intent;
  if (is_on_record) memory.attempts.try_emplace(number);
  AttemptMemory* const attempt = memory.find_attempt(number);
  if (attempt && is_there) attempt->pod.see(pod.pod, now());
  if (!pod.pod.intent || !attempt || !(is_on_record || attempt->has_intent(pod.pod.intent))) return;
  executor_.pod_exists(pod.namespace_, number, pod.uid, memory);
}

// Tracks the pod's node, so that any later holder of the job has seen its loss from the first
// moment.
void JobController::look_at_node(const CachedPod& pod) {
  if (!pod.pod.node_name.empty() && !pod.pod.ended()) nodes_.look(pod.pod.node_name);
}

void JobController::on_node(const std::string& node) {
  for (const PodPtr& pod : pods_.by_index(kByNode, node)) look_at_job_of(*pod);
}

// A renewal without new content needs no reconcile: the last one has set the next.
void JobController::on_heartbeat(const HeartbeatPtr& before, const HeartbeatPtr& after) {
  const CachedHeartbeat& lease = after ? *after : *before;
  const std::string key = lease.namespace_ + "/" + lease.job_name;
  if (before && after) {
    const auto& a = before->lease;
    const auto& b = after->lease;
    const auto job = jobs_.get(key);
    const auto heartbeat = job ? job->job.spec.heartbeat : std::nullopt;
    const auto deadline = heartbeat ? heartbeat->progress_deadline : std::nullopt;
    const bool overdue = deadline && a.progress_age < *deadline && b.progress_age >= *deadline;
    const bool first_word = a.progress_message.empty() && !b.progress_message.empty();
    if (a.holder == b.holder && a.attempt == b.attempt && a.renewed == b.renewed &&
        a.ended == b.ended && !overdue && !first_word) {
      return;
    }
  }
  pool_.queue().add(key, Priority::kFresh);
}

bool JobController::is_worked_on(const CachedHeartbeat& lease) {
  const auto job = jobs_.get(lease.namespace_ + "/" + lease.job_name);
  if (!job || job->uid != lease.owner_uid) return false;
  const std::string& holder = lease.lease.holder;
  const auto pod = pods_.get(lease.namespace_ + "/" + holder.substr(0, holder.find('/')));
  return reconciler::is_worked_on(lease.lease, job->job.status, pod ? &pod->pod : nullptr);
}

void JobController::on_progress() { own_writes_.on_progress(); }

void JobController::time_travelled() {
  for (auto& [key, memory] : memory_) {
    memory->job_version = 0;
    memory->pod_version = 0;
    memory->lease_version = 0;
    // The pods that this process has created may be gone with the time.
    for (auto& [number, attempt] : memory->attempts) attempt.created_version = 0;
  }
}

std::map<std::string, JobCensus::Phases> JobController::jobs_by_namespace() const {
  return census_.by_namespace([this](int shard) { return membership_.holds_shard(shard); });
}

Duration JobController::oldest_overdue() const {
  // Due work is still in progress within this time: the bound of a reconcile is 1 s.
  constexpr std::chrono::seconds kReconcileBound{1};
  if (!client_.server_clock().known()) return Duration::zero();
  const auto first =
      census_.first_deadline([this](int shard) { return membership_.holds_shard(shard); });
  return first ? std::max(Duration::zero(), now() - kReconcileBound - *first) : Duration::zero();
}

}  // namespace holdfast::controller
