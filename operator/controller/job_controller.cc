#include "operator/controller/job_controller.h"

#include <algorithm>

#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

constexpr const char* kByJob = "job";
constexpr const char* kByNode = "node";
// A watch that has not shown our own write by then is given up and listed anew.
constexpr std::chrono::seconds kOwnWriteTimeout{5};

kube::Kind job_kind() {
  kube::Kind kind;
  kind.name = "durablejobs";
  kind.group_path = kJobGroupPath;
  kind.plural = kJobPlural;
  kind.decode = decode_job;
  return kind;
}

kube::Kind pod_kind() {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = reconciler::kJobUidLabel;
  kind.decode = decode_pod;
  return kind;
}

const CachedPod& as_pod(const kube::ObjectPtr& object) {
  return static_cast<const CachedPod&>(*object);
}

std::string job_key(const CachedPod& pod) { return pod.namespace_ + "/" + pod.job_name; }

// Not a matter of time or of an old view: rights, a policy, a schema. Said, because the job is
// stuck.
bool person_must_help(ErrorCode code) {
  return code == ErrorCode::kForbidden || code == ErrorCode::kUnauthorized ||
         code == ErrorCode::kInvalid || code == ErrorCode::kTerminal;
}

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

std::string namespace_of(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

struct JobController::Live {
  bool read = false;
  std::string pod_name;
  std::shared_ptr<const CachedPod> pod;  // null: it is not there
};

JobController::JobController(Dependencies dependencies, Config config, WorkerPool::Metrics metrics)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      random_(dependencies.random),
      log_(dependencies.log),
      telemetry_(dependencies.telemetry),
      config_(std::move(config)),
      jobs_({loop_, client_, random_, log_}, job_kind(), config_.namespaces),
      pods_({loop_, client_, random_, log_}, pod_kind(), config_.namespaces),
      nodes_({loop_, client_, random_, log_, pods_, config_.own_namespace}),
      executor_(loop_, client_, telemetry_, dependencies.events),
      pool_(
          {loop_, log_}, config_.pool,
          [this](std::string key) { return reconcile(std::move(key)); }, std::move(metrics)) {
  pods_.store().add_index(kByJob, [](const kube::Object& object) {
    return std::vector<std::string>{job_key(static_cast<const CachedPod&>(object))};
  });
  pods_.store().add_index(kByNode, [](const kube::Object& object) {
    const auto& pod = static_cast<const CachedPod&>(object).pod;
    return pod.node_name.empty() || pod.ended() ? std::vector<std::string>{}
                                                : std::vector<std::string>{pod.node_name};
  });
  jobs_.on_change([this](const cache::Change& change) { on_job(change); });
  pods_.on_change([this](const cache::Change& change) { on_pod(change); });
  nodes_.on_node_change([this](const std::string& node) { on_node(node); });
  // The reflectors' back-offs may have grown to half a minute, in which nothing would be seen.
  nodes_.on_answers_again([this] {
    for (cache::Informer* informer : informers()) informer->server_answers();
  });
  jobs_.on_progress([this] { on_progress(); });
  pods_.on_progress([this] { on_progress(); });
}

JobController::~JobController() = default;

std::vector<cache::Informer*> JobController::informers() {
  return {&jobs_, &pods_, &nodes_.nodes(), &nodes_.leases()};
}

void JobController::start() {
  jobs_.start();
  pods_.start();
  nodes_.start();
  begin_when_synced();
}

bool JobController::synced() const { return started_; }

void JobController::begin_when_synced() {
  if (started_ || stopping_) return;
  for (cache::Informer* informer : informers()) {
    if (!informer->synced()) {
      loop_.call_after(std::chrono::milliseconds(20), [this] { begin_when_synced(); });
      return;
    }
  }
  started_ = true;
  log_.info("caches are synced", {{"jobs", std::to_string(jobs_.store().size())},
                                  {"pods", std::to_string(pods_.store().size())}});
  pool_.start();
  resync_timer_ = loop_.call_after(config_.resync, [this] { resync(); });
}

void JobController::resync() {
  jobs_.store().for_each(
      [this](const kube::ObjectPtr& job) { pool_.queue().add(job->key(), Priority::kLow); });
  pods_.store().for_each([this](const kube::ObjectPtr& pod) {
    pool_.queue().add(job_key(as_pod(pod)), Priority::kLow);
  });
  resync_timer_ = loop_.call_after(config_.resync, [this] { resync(); });
}

void JobController::stop(bool drain, std::function<void()> stopped) {
  stopping_ = true;
  loop_.cancel(resync_timer_);
  pool_.stop(drain, [this, stopped = std::move(stopped)] {
    nodes_.stop();
    pods_.stop();
    jobs_.stop();
    stopped();
  });
}

void JobController::on_job(const cache::Change& change) {
  const auto phase = [](const kube::ObjectPtr& object) {
    return to_string(static_cast<const CachedJob&>(*object).job.status.phase);
  };
  if (change.before && --phases_[phase(change.before)] == 0) phases_.erase(phase(change.before));
  if (change.after) ++phases_[phase(change.after)];
  const std::string key = change.after ? change.after->key() : change.before->key();
  pool_.queue().add(key, change.initial ? Priority::kLow : Priority::kFresh);
}

void JobController::on_pod(const cache::Change& change) {
  const CachedPod& pod = as_pod(change.after ? change.after : change.before);
  const std::string key = job_key(pod);
  pool_.queue().add(key, change.initial ? Priority::kLow : Priority::kFresh);
  if (!change.before || !change.after) return;
  const CachedPod& before = as_pod(change.before);
  if (before.job_name != pod.job_name) pool_.queue().add(job_key(before));
  if (before.pod.ended() || !pod.pod.ended()) return;
  // It just ended: does its attempt still count?
  const auto job = std::static_pointer_cast<const CachedJob>(jobs_.store().get(key));
  if (!job || job->uid != pod.job_uid()) return;
  const reconciler::Status& status = job->job.status;
  if (status.phase == reconciler::Phase::kRunning && status.pod_name == pod.name) return;
  telemetry_.fenced_outcome(to_string(pod.pod.phase));
  log_.info("a fenced pod ended; its outcome does not count",
            {{"job", key},
             {"uid", job->uid},
             {"attempt", std::to_string(pod.pod.attempt)},
             {"pod", pod.name},
             {"phase", to_string(pod.pod.phase)}});
}

void JobController::on_node(const std::string& node) {
  for (const kube::ObjectPtr& pod : pods_.store().by_index(kByNode, node)) {
    pool_.queue().add(job_key(as_pod(pod)));
  }
}

void JobController::on_progress() {
  std::uint64_t travels = 0;
  for (cache::Informer* informer : informers()) travels += informer->time_travels();
  if (travels != time_travels_) {
    time_travels_ = travels;
    on_time_travel();
  }
  for (auto key = held_.begin(); key != held_.end();) {
    const auto memory = memory_.find(*key);
    const std::string ns = namespace_of(*key);
    if (memory != memory_.end() && (memory->second->job_version > jobs_.version(ns) ||
                                    memory->second->pod_version > pods_.version(ns))) {
      ++key;
      continue;
    }
    pool_.queue().add(*key);
    key = held_.erase(key);
  }
}

// The server's data was set back: our own writes may never show, and what the other caches hold may
// be of the future. Once for a restore: an informer that has found it by itself does not list
// again.
void JobController::on_time_travel() {
  log_.error("the API server's data was set back (restored from a snapshot?); looking at all anew");
  for (auto& [key, memory] : memory_) {
    memory->job_version = 0;
    memory->pod_version = 0;
  }
  for (cache::Informer* informer : informers()) {
    std::uint64_t& seen = travelled_[informer];
    if (informer->time_travels() == seen) informer->relist();
    seen = informer->time_travels();
  }
}

Duration JobController::held(const std::string& key, const std::string& ns, JobMemory& memory) {
  const bool job_lags = memory.job_version > jobs_.version(ns);
  const bool pods_lag = memory.pod_version > pods_.version(ns);
  if (!job_lags && !pods_lag) {
    memory.held_since = SteadyTime{};
    return Duration::zero();
  }
  const SteadyTime now = loop_.now();
  if (memory.held_since == SteadyTime{}) memory.held_since = now;
  held_.insert(key);
  const Duration waited = now - memory.held_since;
  if (waited < kOwnWriteTimeout) return kOwnWriteTimeout - waited;
  memory.held_since = now;
  if (now - last_relist_ >= kOwnWriteTimeout) {
    last_relist_ = now;
    log_.warn("the watch does not show our own writes; listing anew",
              {{"job", key}, {"kind", job_lags ? "durablejobs" : "pods"}});
    (job_lags ? jobs_ : pods_).relist();
  }
  return kOwnWriteTimeout;
}

std::shared_ptr<JobMemory> JobController::remember(const std::string& key, const CachedJob* job) {
  if (!job) {
    memory_.erase(key);
    return nullptr;
  }
  std::shared_ptr<JobMemory>& memory = memory_[key];
  if (!memory || memory->uid != job->uid) {
    memory = std::make_shared<JobMemory>();
    memory->uid = job->uid;
  }
  return memory;
}

Task<ReconcileResult> JobController::reconcile(std::string key) {
  const auto job = std::static_pointer_cast<const CachedJob>(jobs_.store().get(key));
  auto strangers = release_strangers(key, job ? job->uid : "");
  const Status released = co_await strangers;
  const auto memory = remember(key, job.get());
  if (!job) {
    co_return released ? ReconcileResult{} : failed(released.error());
  }
  if (const Duration wait = held(key, job->namespace_, *memory); wait > Duration::zero()) {
    co_return again_after(wait);
  }
  auto task = reconcile_job(job, memory);
  ReconcileResult result = co_await task;
  if (!result.error && !released) result.error = released.error();
  // At rest a finished job needs no memory but that of its own writes, which have shown.
  if (is_terminal(job->job.status.phase) && !result.error &&
      memory->pod_version <= pods_.version(job->namespace_)) {
    memory_.erase(key);
  }
  co_return result;
}

Task<ReconcileResult> JobController::reconcile_job(std::shared_ptr<const CachedJob> job,
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
      if (!confirmed) co_return failed(confirmed.error());
      continue;
    }
    auto task = executor_.perform(*job, decision, *memory, log);
    const Result<Executor::Outcome> done = co_await task;
    if (!done) {
      if (done.error().code == ErrorCode::kNotFound) co_return ReconcileResult{};
      if (person_must_help(done.error().code)) {
        log.warn("a write was refused; it is tried again", {{"error", done.error().message}});
      } else {
        log.debug("a write failed; deciding again", {{"error", done.error().message}});
      }
      co_return failed(done.error());
    }
    // A refused creation is put on record at once, unless the job was just written: then the
    // cache must show that first.
    if (done->decide_again) co_return again_after(std::chrono::milliseconds(1));
    co_return again_after(decision.wake_after);
  }
}

Task<Status> JobController::confirm(const CachedJob& job, JobMemory& memory, Live& live) {
  live.pod_name = job.job.status.pod_name;
  auto get = client_.get(kube::object_path("/api/v1", "pods", job.namespace_, live.pod_name));
  const Result<Json> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (answer) {
    live.pod = std::static_pointer_cast<const CachedPod>(decode_pod(*answer));
    if (live.pod && live.pod->owner_uid != job.uid) live.pod.reset();
  }
  if (live.pod && !live.pod->pod.node_name.empty()) {
    auto task = nodes_.confirm(live.pod->pod.node_name);
    const Status confirmed = co_await task;
    if (!confirmed) co_return confirmed.error();
  }
  // Last: a pod can have come and gone unseen only if the job has changed since.
  auto get_job =
      client_.get(kube::object_path(kJobGroupPath, kJobPlural, job.namespace_, job.name));
  const Result<Json> current = co_await get_job;
  if (!current) co_return current.error();
  kube::Object meta;
  if (!kube::decode_meta(*current, meta) || meta.uid != job.uid || meta.version != job.version) {
    if (meta.uid == job.uid) memory.job_version = std::max(memory.job_version, meta.version);
    co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
  }
  live.read = true;
  co_return Unit{};
}

Task<Status> JobController::release_strangers(std::string key, std::string uid) {
  std::vector<kube::ObjectPtr> strangers;
  for (const kube::ObjectPtr& pod : pods_.store().by_index(kByJob, key)) {
    if (as_pod(pod).pod.has_finalizer && as_pod(pod).job_uid() != uid) strangers.push_back(pod);
  }
  if (strangers.empty()) co_return Unit{};
  // The cache of jobs may be behind the cache of pods: only a live read says that a job is gone.
  const std::string ns = namespace_of(key);
  auto get =
      client_.get(kube::object_path(kJobGroupPath, kJobPlural, ns, key.substr(ns.size() + 1)));
  const Result<Json> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  const std::string live_uid = answer ? string_at(at(*answer, "metadata"), "uid") : "";
  for (const kube::ObjectPtr& pod : strangers) {
    if (as_pod(pod).job_uid() == live_uid) continue;
    auto task = executor_.release_pod(ns, pod->name, pod->uid, nullptr);
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
    if (pod.job_uid() != job.uid || (live.read && pod.name == live.pod_name)) continue;
    view.pods.push_back(pod.pod);
  }
  if (live.pod) view.pods.push_back(live.pod->pod);
  // The order of an index is not one: decisions must not hang on it.
  std::sort(view.pods.begin(), view.pods.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt < b.attempt : a.name < b.name;
  });
  view.observed.confirmed = live.read;
  observe(job, memory, view);
  return view;
}

void JobController::observe(const CachedJob& job, JobMemory& memory, reconciler::JobView& view) {
  const SteadyTime steady = loop_.now();
  const reconciler::Status& status = job.job.status;
  reconciler::Observed& observed = view.observed;
  observed.nonce = random_.next();
  observed.live_for = nodes_.pods_live_for();
  if (memory.last_write) observed.since_write = steady - *memory.last_write;
  for (const reconciler::PodView& pod : view.pods) {
    if (pod.ended() || pod.node_name.empty()) continue;
    observed.nodes[pod.node_name] = nodes_.observe(pod.node_name, job.job.spec.lost_after);
  }
  if (status.phase != reconciler::Phase::kRunning) return;
  if (reconciler::current_pod(view)) {
    memory.pod_attempt = status.attempt;
    return;
  }
  observed.own_intent = memory.intent_attempt == status.attempt &&
                        std::find(memory.intent_stamps.begin(), memory.intent_stamps.end(),
                                  status.attempt_start_time) != memory.intent_stamps.end();
  observed.pod_existed = memory.pod_attempt == status.attempt;
  if (memory.bare_attempt != status.attempt) {
    memory.bare_attempt = status.attempt;
    memory.bare_since = steady;
  }
  observed.no_pod_for = steady - memory.bare_since;
  if (memory.refused_attempt == status.attempt) {
    observed.refusal = memory.refusal;
    observed.refusal->retry_in = std::max(Duration::zero(), memory.retry_at - steady);
  }
}

std::map<std::string, std::size_t> JobController::jobs_by_phase() const { return phases_; }

Duration JobController::oldest_overdue() const {
  // What is due now is being done: the bound on a reconcile is a second.
  constexpr std::chrono::seconds kReconcileBound{1};
  if (!client_.server_clock().known()) return Duration::zero();
  const Time before = now() - kReconcileBound;
  Duration oldest{0};
  const_cast<cache::Informer&>(jobs_).store().for_each([&](const kube::ObjectPtr& object) {
    const auto& waiting = static_cast<const CachedJob&>(*object).job.status.waiting;
    if (waiting && waiting->deadline) oldest = std::max(oldest, before - *waiting->deadline);
  });
  return oldest;
}

}  // namespace holdfast::controller
