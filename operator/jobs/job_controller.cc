#include "operator/jobs/job_controller.h"

#include <algorithm>
#include <utility>

#include "reconciler/run/heartbeat.h"

namespace holdfast::jobs {

JobController::JobController(const Dependencies& dependencies, const Config& config,
                             controller::ReconcilePool::Metrics metrics)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      caches_(dependencies.jobs, dependencies.pods, dependencies.heartbeats,
              dependencies.membership, dependencies.readings, dependencies.watched_shards),
      silences_(loop_, client_, caches_, dependencies.nodes),
      neighbours_(dependencies.neighbours),
      executor_(loop_, client_, dependencies.membership, dependencies.telemetry,
                dependencies.events, config.agent_image),
      memories_(
          loop_, caches_, [this](const std::string& key) { queue().add(key); },
          [this](const JobMemories::Ptr& memory) { creations_.drop(memory); }),
      creations_(creation_dependencies(dependencies.membership), config.pool.workers),
      shards_(loop_, client_, caches_, dependencies.membership, memories_,
              [this](const std::string& key) { queue().add(key, controller::Priority::kLow); }),
      reconciler_(
          {loop_, client_, dependencies.random, dependencies.log, caches_, dependencies.membership,
           dependencies.nodes, silences_, shards_, neighbours_, executor_, memories_, creations_,
           [this](const std::string& key) { queue().add(key, controller::Priority::kLow); }},
          {config.resync, /*may_lose_rights=*/!config.namespaces.empty(), config.namespaces}),
      pool_(
          {loop_, dependencies.log}, config.pool,
          [this](std::string key) { return reconciler_.reconcile(std::move(key)); },
          std::move(metrics)),
      strays_(stray_dependencies(dependencies.log, dependencies.membership), config.namespaces),
      triggers_({loop_, client_, dependencies.log, dependencies.telemetry, caches_,
                 dependencies.nodes, silences_, census_, memories_, executor_, strays_, queue()},
                config.resync),
      stop_(loop_, pool_, creations_, [this] {
        memories_.stop_waits();
        client_.wind_down();
      }) {
  silences_.keep_windows(dependencies.windows);
  caches_.jobs().on_change([this](const auto& change) {
    if (change.initial || !change.after) return;
    const bool had_it =
        change.before && caches_.shard_of(*change.before) == caches_.shard_of(*change.after);
    if (!had_it) shards_.came(*change.after);
  });
}

// The release of a kept shard may call back into this controller, so release them all first.
JobController::~JobController() { memories_.release_shards(); }

PodCreations::Dependencies JobController::creation_dependencies(
    membership::Membership& membership) {
  return {loop_,
          client_,
          caches_,
          membership,
          executor_,
          memories_,
          [this](const std::string& key) { queue().add(key, controller::Priority::kStart); },
          [this](const std::string& key) { queue().add(key); },
          [this] { stop_.on_creations(); }};
}

StrayPods::Dependencies JobController::stray_dependencies(
    const Log& log, const membership::Membership& membership) {
  return {loop_,
          client_,
          log,
          [&membership](int shard) { return membership.claim_shard(shard); },
          [this](const std::string& namespace_, const std::string& name) {
            return caches_.pod(namespace_, name) != nullptr;
          },
          [this](std::string namespace_, std::string name, std::string uid,
                 membership::Ownership::Claim claim) {
            return executor_.release_pod(std::move(namespace_), std::move(name), std::move(uid),
                                         claim, nullptr);
          },
          [this](std::string namespace_, std::string name, std::string uid, std::string job_name,
                 std::string job_uid, membership::Ownership::Claim claim) {
            return executor_.relabel_pod(std::move(namespace_), std::move(name), std::move(uid),
                                         std::move(job_name), std::move(job_uid), claim);
          }};
}

void JobController::begin() {
  triggers_.begin();
  pool_.start();
  reconciler_.finished().begin();
  triggers_.resync_later();
}

void JobController::stop(std::function<void()> idle) {
  strays_.stop();
  reconciler_.finished().stop();
  triggers_.stop();
  stop_.begin(std::move(idle));
}

void JobController::look_at_all(int shard) {
  if (shard == StrayPods::kWalkersShard) strays_.walk_soon();
  shards_.gained(shard);
  reconciler_.finished().gained();
}

void JobController::lost(int shard) {
  shards_.lost(shard);
  reconciler_.finished().lost(shard);
  creations_.lost(shard);
}

void JobController::look_at_unfinished() {
  caches_.jobs().for_each([this](const codecs::JobPtr& job) {
    if (is_terminal(job->job.status.phase) || !caches_.holds_shard_of(*job)) return;
    queue().add(job->key(), priority_of(*job));
  });
}

bool JobController::is_worked_on(const codecs::CachedHeartbeat& lease) const {
  const codecs::JobPtr job = caches_.job_of(lease);
  if (!job) return false;
  const codecs::PodPtr pod = caches_.pod(lease.namespace_, pod_name_of(lease.lease.holder));
  return reconciler::is_worked_on(lease.lease, job->job.status, pod ? &pod->pod : nullptr);
}

std::map<std::string, JobCensus::Phases> JobController::jobs_by_namespace() const {
  auto jobs = census_.by_namespace([this](int shard) { return caches_.holds_shard(shard); });
  for (const auto& [namespace_, phases] : reconciler_.finished().counts()) {
    for (const auto& [phase, count] : phases) jobs[namespace_][phase] += count;
  }
  return jobs;
}

Duration JobController::oldest_overdue() const {
  // Due work is still in progress within this time: the bound of a reconcile is 1 s.
  constexpr std::chrono::seconds kReconcileBound{1};
  if (!client_.server_clock().known()) return Duration::zero();
  const auto first =
      census_.first_deadline([this](int shard) { return caches_.holds_shard(shard); });
  if (!first) return Duration::zero();
  const Time now = client_.server_clock().now(loop_.now());
  return std::max(Duration::zero(), now - kReconcileBound - *first);
}

}  // namespace holdfast::jobs
