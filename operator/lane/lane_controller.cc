#include "operator/lane/lane_controller.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "operator/jobs/pod_index.h"

namespace holdfast::lane_controller {
namespace {

// A watch that has not shown our own write after this time lags.
constexpr std::chrono::seconds kLagLimit{5};
constexpr int kLaneWorkers = 16;
// For what no watch reports.
constexpr std::chrono::minutes kLookAgain{30};
// An object that the API server did not find may be there soon: a CRD.
constexpr std::chrono::seconds kMissingLook{30};

}  // namespace

LaneController::LaneController(Dependencies deps)
    : loop_(deps.loop),
      client_(deps.client),
      log_(deps.log),
      jobs_(deps.jobs),
      batch_jobs_(deps.batch_jobs),
      keeps_rights_(deps.keeps_rights),
      guard_(std::move(deps.guard)),
      mirrored_(std::move(deps.mirrored)),
      membership_(deps.membership),
      facts_({jobs_, batch_jobs_, deps.pods, deps.watched_shards, deps.namespaces, membership_}),
      requests_({loop_, client_, deps.events, membership_, facts_,
                 [this](const std::string& key) { pool_.queue().add(key); },
                 std::move(deps.look_for)}),
      pool_({loop_, log_}, {.workers = kLaneWorkers, .queue = {}},
            [this](std::string key) { return reconcile(std::move(key)); }) {
  batch_jobs_.on_change([this](const auto& change) { on_batch_job(change); });
  jobs_.on_change([this](const auto& change) { on_job(change); });
  deps.pods.on_change([this](const auto& change) { on_pod(change); });
  if (deps.namespaces) {
    deps.namespaces->on_change([this](const cache::Change& change) { on_namespace(change); });
  }
}

void LaneController::look_at_all_of(const std::set<int>& shards) {
  batch_jobs_.for_each([&](const BatchJobPtr& job) {
    if (!job->ours || shards.count(facts_.shard_of(*job)) == 0) return;
    if (facts_.has_work(*job)) pool_.queue().add(job->key(), controller::Priority::kLow);
  });
}

jobs::Mirror LaneController::mirror_of(const codecs::CachedJob& durable) const {
  const std::vector<BatchJobPtr> owners = facts_.owners(durable);
  const auto all = [&](auto what) { return std::all_of(owners.begin(), owners.end(), what); };
  if (batch_jobs_->version(durable.namespace_) == 0) return jobs::Mirror::kNothing;
  if (all([](const BatchJobPtr& owner) { return owner->finished; })) return jobs::Mirror::kDone;
  const bool lead_back =
      all([&](const BatchJobPtr& owner) { return facts_.leads_back(*owner, durable); });
  return lead_back ? jobs::Mirror::kLeadsBack : jobs::Mirror::kNothing;
}

// ---- What the caches show.

void LaneController::on_batch_job(const cache::View<CachedBatchJob>::Change& change) {
  const bool lives = change.after && change.after->ours && !change.after->finished;
  if (change.before && (!lives || change.before->uid != change.after->uid)) {
    memory_.erase(change.before->uid);
  }
  const CachedBatchJob& latest = change.latest();
  if (latest.ours && !lives) {
    for (const codecs::JobPtr& durable : facts_.owned(latest.namespace_, latest.uid)) {
      mirrored_(durable->key());
    }
  }
  if (!change.after || !change.after->ours || !facts_.has_work(*change.after)) return;
  pool_.queue().add(change.after->key(),
                    change.initial ? controller::Priority::kLow : controller::Priority::kFresh);
}

void LaneController::on_job(const cache::View<codecs::CachedJob>::Change& change) {
  const codecs::CachedJob& job = change.latest();
  if (job.source.empty()) return;
  for (const BatchJobPtr& owner : facts_.owners(job)) {
    if (!facts_.has_work(*owner)) continue;
    pool_.queue().add(owner->key(),
                      change.initial ? controller::Priority::kLow : controller::Priority::kFresh);
  }
}

// The status of its DurableJob reports the other changes of a pod, and its end.
void LaneController::on_pod(const cache::View<codecs::CachedPod>::Change& change) {
  if (counts_as_ready(change.before) == counts_as_ready(change.after)) return;
  if (change.after && change.after->pod.ended()) return;
  const codecs::JobPtr job = jobs_.get(jobs::job_key(change.latest()));
  if (!job || job->source.empty()) return;
  for (const BatchJobPtr& owner : facts_.owners(*job)) {
    if (!owner->finished) pool_.queue().add(owner->key());
  }
}

void LaneController::on_namespace(const cache::Change& change) {
  if (!change.after || change.before) return;
  batch_jobs_.for_each([&](const BatchJobPtr& job) {
    if (!job->ours || job->namespace_ != change.after->name) return;
    if (facts_.has_work(*job)) pool_.queue().add(job->key(), controller::Priority::kLow);
  });
}

// ---- One reconcile of a Job.

std::optional<Duration> LaneController::awaits_caches(const CachedBatchJob& job,
                                                      LaneMemory& memory) {
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
                                const LaneMemory& memory, codecs::JobPtr& keep) const {
  lane::View view{.job = job};
  view.now = now();
  view.keeps_rights = keeps_rights_;
  view.guard = guard_();
  view.shard_label = membership_.shard_label(facts_.shard_of(cached));
  const std::optional<lane::Record> record = lane::record_of(job);
  const std::string name = record ? record->name : lane::first_name(job);
  keep = jobs_.get(job.namespace_ + "/" + name);
  const codecs::JobPtr& settled = memory.settled;
  const bool is_newer = settled && (!keep || keep->version < settled->version);
  if (is_newer && settled->name == name) keep = settled;
  if (keep) {
    view.durable = lane::DurableView{&keep->job, keep->owner_uid, lane::parse_source(keep->source)};
  }
  const bool is_known_taken = memory.taken == name && loop_.now() < memory.taken_until;
  view.name_taken = is_known_taken || (view.durable && view.durable->owner_uid != job.uid);
  view.refusal = memory.refusal;
  view.refused = memory.refused;
  view.tried = memory.tried;
  if (view.durable) view.ready = facts_.ready_pods(*keep);
  if (memory.last_write) {
    view.ready_pause = *memory.last_write + shortest_pause(cached.bytes) - loop_.now();
  }
  if (record && !record->uid.empty()) {
    view.is_gone = memory.gone == record->uid;
  }
  return view;
}

Task<controller::ReconcileResult> LaneController::reconcile(std::string key) {
  const BatchJobPtr found = batch_jobs_.get(key);
  if (!found || !found->ours) co_return controller::ReconcileResult{};
  const auto claim = membership_.claim(facts_.shard_key(*found));
  // It is looked at when the shard has been read: before, its DurableJob seems to be missing.
  if (!claim || !facts_.has_read(claim->shard, found->namespace_)) {
    co_return controller::ReconcileResult{};
  }
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  if (found->finished) {
    auto strays = delete_strays_of_finished(found, *claim);
    co_return co_await strays;
  }
  LaneMemoryPtr& kept = memory_[found->uid];
  if (!kept) kept = std::make_shared<LaneMemory>();
  const LaneMemoryPtr memory = kept;
  controller::ReconcileResult result;
  if (const auto wait = awaits_caches(*found, *memory)) {
    result.wake_after = *wait;
    co_return result;
  }
  auto read = requests_.whole(found);
  const Result<lane::BatchJob> job = co_await read;
  if (!job) {
    if (job.error().code != ErrorCode::kNotFound) result.error = job.error();
    co_return result;
  }
  // A Job that has begun goes on, whatever its namespace's labels are now.
  const bool has_begun =
      lane::record_of(*job) || !facts_.owned(found->namespace_, found->uid).empty();
  if (!has_begun && !facts_.is_selected(found->namespace_)) co_return result;
  auto strays = requests_.delete_strays(*job, *claim);
  const Result<> cleared = co_await strays;
  if (!cleared) {
    result.error = cleared.error();
    co_return result;
  }
  codecs::JobPtr keep;
  lane::View seen = view(*found, *job, *memory, keep);
  if (seen.is_gone) {
    auto left = requests_.pods_left(job->namespace_, lane::record_of(*job)->uid);
    const Result<bool> answer = co_await left;
    if (!answer) {
      result.error = answer.error();
      co_return result;
    }
    seen.pods_left = *answer;
  }
  const lane::Decision decision = lane::decide(seen);
  auto work = requests_.perform(*job, decision, memory, *claim);
  const Result<> done = co_await work;
  const bool is_missing = !done && done.error().code == ErrorCode::kNotFound;
  result.wake_after = decision.wake_after.value_or(is_missing ? kMissingLook : kLookAgain);
  if (!done && !is_missing) result.error = done.error();
  co_return result;
}

// The cache has only the name of a Job that has finished.
Task<controller::ReconcileResult> LaneController::delete_strays_of_finished(
    BatchJobPtr found, membership::Ownership::Claim claim) {
  controller::ReconcileResult result;
  if (!facts_.has_work(*found)) co_return result;
  auto read = requests_.whole(found);
  const Result<lane::BatchJob> job = co_await read;
  Result<> cleared = Unit{};
  if (job) {
    auto strays = requests_.delete_strays(*job, claim);
    cleared = co_await strays;
  }
  const std::optional<Error> error = !job       ? std::optional(job.error())
                                     : !cleared ? std::optional(cleared.error())
                                                : std::nullopt;
  if (error && error->code != ErrorCode::kNotFound) result.error = error;
  co_return result;
}

}  // namespace holdfast::lane_controller
