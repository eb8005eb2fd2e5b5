#include "operator/lane/lane_controller.h"

#include <algorithm>

#include "operator/jobs/job_controller.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

// A watch that has not shown our own write after this time lags.
constexpr std::chrono::seconds kLagLimit{5};
constexpr int kLaneWorkers = 16;
// For what no watch tells.
constexpr std::chrono::minutes kLookAgain{30};
// An object that the API server did not find may be there soon: a CRD.
constexpr std::chrono::seconds kMissingLook{30};

constexpr const char* kByUid = "lane-uid";      // of batch/v1 Jobs
constexpr const char* kByOwner = "lane-owner";  // of DurableJobs that run a Job

// An owner is in the namespace of what it owns. A UID in an ownerReference is only a text.
std::string in_namespace(const std::string& namespace_, const std::string& uid) {
  return namespace_ + "/" + uid;
}

// As batch/v1 counts.
bool counts_as_ready(const PodPtr& cached) {
  if (!cached) return false;
  const reconciler::PodView& pod = cached->pod;
  return pod.ready && !pod.deletion && !pod.ended();
}

// etcd keeps each version of a Job until it compacts.
Duration shortest_pause(std::size_t bytes) {
  constexpr std::size_t kBytesPerSecond = std::size_t{128} * 1024;
  return std::max<Duration>(std::chrono::seconds(1),
                            std::chrono::milliseconds(bytes * 1000 / kBytesPerSecond));
}

ReconcilePool::Config pool_config() {
  ReconcilePool::Config config;
  config.workers = kLaneWorkers;
  return config;
}

}  // namespace

LaneController::LaneController(Dependencies dependencies)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      events_(dependencies.events),
      jobs_(dependencies.jobs),
      batch_jobs_(dependencies.batch_jobs),
      pods_(dependencies.pods),
      pod_shards_(dependencies.pod_shards),
      namespaces_(dependencies.namespaces),
      keeps_rights_(dependencies.keeps_rights),
      membership_(dependencies.membership),
      pool_({loop_, log_}, pool_config(),
            [this](std::string key) { return reconcile(std::move(key)); }) {
  batch_jobs_.add_index(kByUid, [](const CachedBatchJob& job) {
    return job.ours ? std::vector<std::string>{in_namespace(job.namespace_, job.uid)}
                    : std::vector<std::string>{};
  });
  jobs_.add_index(kByOwner, [](const CachedJob& job) {
    return job.source.empty() || job.owner_uid.empty()
               ? std::vector<std::string>{}
               : std::vector<std::string>{in_namespace(job.namespace_, job.owner_uid)};
  });
  batch_jobs_.on_change([this](const auto& change) { on_batch_job(change); });
  jobs_.on_change([this](const auto& change) { on_job(change); });
  pods_.on_change([this](const auto& change) { on_pod(change); });
  if (namespaces_) {
    namespaces_->on_change([this](const cache::Change& change) { on_namespace(change); });
  }
}

void LaneController::look_at_all_of(const std::set<int>& shards) {
  batch_jobs_.for_each([&](const BatchJobPtr& job) {
    if (!job->ours || shards.count(membership_.shard_of(shard_key(*job))) == 0) return;
    if (has_work(*job)) pool_.queue().add(job->key(), Priority::kLow);
  });
}

std::string LaneController::shard_key(const CachedBatchJob& job) const {
  const std::vector<JobPtr> all = owned(job.namespace_, job.uid);
  const auto first = std::min_element(
      all.begin(), all.end(), [](const JobPtr& a, const JobPtr& b) { return a->name < b->name; });
  if (first != all.end()) return reconciler::shard_key((*first)->job);
  return job.has_queue ? job.namespace_ : job.uid;
}

// ---- What the caches tell.

std::vector<JobPtr> LaneController::owned(const std::string& namespace_,
                                          const std::string& uid) const {
  return jobs_.by_index(kByOwner, in_namespace(namespace_, uid));
}

bool LaneController::has_work(const CachedBatchJob& job) const {
  if (!job.finished) return true;
  const std::vector<JobPtr> all = owned(job.namespace_, job.uid);
  return std::any_of(all.begin(), all.end(), [](const JobPtr& one) {
    return !is_terminal(one->job.status.phase) && !one->job.deleting;
  });
}

void LaneController::on_batch_job(const cache::View<CachedBatchJob>::Change& change) {
  const bool lives = change.after && change.after->ours && !change.after->finished;
  if (change.before && (!lives || change.before->uid != change.after->uid)) {
    memory_.erase(change.before->uid);
  }
  if (!change.after || !change.after->ours || !has_work(*change.after)) return;
  pool_.queue().add(change.after->key(), change.initial ? Priority::kLow : Priority::kFresh);
}

void LaneController::on_job(const cache::View<CachedJob>::Change& change) {
  const CachedJob& job = change.latest();
  if (job.source.empty()) return;
  for (const BatchJobPtr& owner :
       batch_jobs_.by_index(kByUid, in_namespace(job.namespace_, job.owner_uid))) {
    if (!has_work(*owner)) continue;
    pool_.queue().add(owner->key(), change.initial ? Priority::kLow : Priority::kFresh);
  }
}

// Of the other changes of a pod the status of its DurableJob tells.
void LaneController::on_pod(const cache::View<CachedPod>::Change& change) {
  if (counts_as_ready(change.before) == counts_as_ready(change.after)) return;
  const JobPtr job = jobs_.get(job_key(change.latest()));
  if (!job || job->source.empty()) return;
  for (const BatchJobPtr& owner :
       batch_jobs_.by_index(kByUid, in_namespace(job->namespace_, job->owner_uid))) {
    if (!owner->finished) pool_.queue().add(owner->key());
  }
}

std::optional<std::int64_t> LaneController::ready_pods(const CachedJob& durable) const {
  const int shard = membership_.shard_of(reconciler::shard_key(durable.job));
  if (!pod_shards_.read(shard, durable.namespace_)) return std::nullopt;
  const std::vector<PodPtr> pods = pods_.by_index(kByJob, durable.key());
  return std::count_if(pods.begin(), pods.end(), [&](const PodPtr& pod) {
    return pod->owner_uid == durable.uid && counts_as_ready(pod);
  });
}

void LaneController::on_namespace(const cache::Change& change) {
  if (!change.after || change.before) return;
  batch_jobs_.for_each([&](const BatchJobPtr& job) {
    if (!job->ours || job->namespace_ != change.after->name) return;
    if (has_work(*job)) pool_.queue().add(job->key(), Priority::kLow);
  });
}

bool LaneController::is_selected(const std::string& ns) const {
  return !namespaces_ || namespaces_->store().get(ns) != nullptr;
}

BatchJobPtr LaneController::cached(const std::string& key) const { return batch_jobs_.get(key); }

std::optional<lane::DurableView> LaneController::durable(const std::string& ns,
                                                         const std::string& name,
                                                         JobPtr& keep) const {
  keep = jobs_.get(ns + "/" + name);
  if (!keep) return std::nullopt;
  return lane::DurableView{&keep->job, keep->owner_uid, lane::parse_source(keep->source)};
}

// ---- One reconcile of a Job.

std::optional<Duration> LaneController::awaits_caches(const CachedBatchJob& job, Memory& memory) {
  const bool job_lags = job.version < memory.job_version;
  const bool durable_lags = memory.durable_version > jobs_->version(job.namespace_);
  if (!job_lags && !durable_lags) {
    memory.waits_since.reset();
    return std::nullopt;
  }
  if (!memory.waits_since) memory.waits_since = loop_.now();
  const Duration left = *memory.waits_since + kLagLimit - loop_.now();
  if (left > Duration::zero()) return left;
  const Log::Fields seen = {{"job", job.key()}, {"seen", "our own write"}};
  if (job_lags) batch_jobs_->watch_lags(job.namespace_, seen);
  if (durable_lags) jobs_->watch_lags(job.namespace_, seen);
  return Duration(kLagLimit);
}

lane::View LaneController::view(const CachedBatchJob& cached, const lane::BatchJob& job,
                                const Memory& memory, JobPtr& keep) const {
  lane::View view{.job = job};
  view.now = now();
  view.keeps_rights = keeps_rights_;
  view.shard_label = membership_.shard_label(membership_.shard_of(shard_key(cached)));
  const std::optional<lane::Record> record = lane::record_of(job);
  const std::string name = record ? record->name : lane::first_name(job);
  view.durable = durable(job.namespace_, name, keep);
  const bool is_known_taken = memory.taken == name && loop_.now() < memory.taken_until;
  view.name_taken = is_known_taken || (view.durable && view.durable->owner_uid != job.uid);
  view.refusal = memory.refusal;
  view.refused = memory.refused;
  if (view.durable) view.ready = ready_pods(*keep);
  if (memory.last_write) {
    view.ready_pause = *memory.last_write + shortest_pause(cached.bytes) - loop_.now();
  }
  if (record && !record->uid.empty()) {
    view.is_gone = memory.gone == record->uid;
  }
  return view;
}

Task<Result<lane::BatchJob>> LaneController::whole(BatchJobPtr job) {
  if (job->job) co_return *job->job;
  auto get = client_.get(
      kube::object_path(lane::kBatchGroupPath, lane::kBatchPlural, job->namespace_, job->name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  std::optional<lane::BatchJob> read = decode_whole_batch_job(*answer);
  if (!read || read->uid != job->uid) {
    co_return make_error(ErrorCode::kConflict, "the Job is another one now");
  }
  co_return std::move(*read);
}

Task<ReconcileResult> LaneController::reconcile(std::string key) {
  const auto found = cached(key);
  if (!found || !found->ours) co_return ReconcileResult{};
  const auto claim = membership_.claim(shard_key(*found));
  if (!claim) co_return ReconcileResult{};
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  if (found->finished) {
    auto strays = delete_strays_of_finished(found, *claim);
    co_return co_await strays;
  }
  std::shared_ptr<Memory>& kept = memory_[found->uid];
  if (!kept) kept = std::make_shared<Memory>();
  const std::shared_ptr<Memory> memory = kept;
  ReconcileResult result;
  if (const auto wait = awaits_caches(*found, *memory)) {
    result.wake_after = *wait;
    co_return result;
  }
  auto read = whole(found);
  const Result<lane::BatchJob> job = co_await read;
  if (!job) {
    if (job.error().code != ErrorCode::kNotFound) result.error = job.error();
    co_return result;
  }
  // A Job that has begun goes on, whatever its namespace's labels are now.
  if (!is_selected(found->namespace_) && !lane::record_of(*job)) co_return result;
  auto strays = delete_strays(*job, *claim);
  const Status cleared = co_await strays;
  if (!cleared) {
    result.error = cleared.error();
    co_return result;
  }
  JobPtr keep;
  lane::View seen = view(*found, *job, *memory, keep);
  if (seen.is_gone) {
    auto left = pods_left(job->namespace_, lane::record_of(*job)->uid);
    const Result<bool> answer = co_await left;
    if (!answer) {
      result.error = answer.error();
      co_return result;
    }
    seen.pods_left = *answer;
  }
  const lane::Decision decision = lane::decide(seen);
  auto work = perform(*job, decision, memory, *claim);
  const Status done = co_await work;
  const bool is_missing = !done && done.error().code == ErrorCode::kNotFound;
  result.wake_after = decision.wake_after.value_or(is_missing ? kMissingLook : kLookAgain);
  if (!done && !is_missing) result.error = done.error();
  co_return result;
}

Task<Status> LaneController::perform(const lane::BatchJob& job, const lane::Decision& decision,
                                     std::shared_ptr<Memory> memory, Ownership::Claim claim) {
  if (decision.look) {
    auto task = look(job, memory);
    co_return co_await task;
  }
  Status patched = Unit{};
  if (decision.patch) {
    auto task = patch(job, *decision.patch, memory, claim);
    patched = co_await task;
    // The status is mirrored all the same.
    if (!patched && !is_refusal(patched.error())) co_return patched.error();
  }
  if (decision.status) {
    auto task = write_status(job, *decision.status, memory, claim);
    const Status done = co_await task;
    if (!done) co_return done.error();
  }
  if (decision.creation) {
    auto task = create(job, *decision.creation, memory, claim);
    const Status done = co_await task;
    if (!done) co_return done.error();
    if (memory->created.empty()) co_return Unit{};
  }
  for (const lane::Event& event : decision.events) tell(job, event);
  co_return patched;
}

void LaneController::tell(const lane::BatchJob& job, const lane::Event& event) {
  events_.record({"batch/v1", "Job", job.namespace_, job.name, job.uid}, event.warning,
                 event.reason, "Run", event.note);
}

}  // namespace holdfast::controller
