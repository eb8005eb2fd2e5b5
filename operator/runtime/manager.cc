#include "operator/runtime/manager.h"

#include <utility>

#include "core/json.h"
#include "operator/codecs/at_rest.h"
#include "operator/jobs/shard_selectors.h"
#include "operator/membership/lease_codec.h"

namespace holdfast::runtime {
namespace {

// The limit of a reason in an annotation.
constexpr std::size_t kMaxReasonBytes = 256;

jobs::JobController::Config of_namespaces(jobs::JobController::Config config,
                                          const std::vector<std::string>& namespaces) {
  config.namespaces = namespaces;
  return config;
}

}  // namespace

Manager::Observed::Observed(const cache::Informer::Dependencies& shared, cache::Informer& pods,
                            const std::vector<std::string>& namespaces,
                            observe::HeartbeatMonitor::WorkedOn worked_on,
                            std::unique_ptr<observe::Guard> guard_of)
    : nodes({shared.loop, shared.client, shared.random, shared.log, pods, namespaces}),
      heartbeats(shared, namespaces, std::move(worked_on),
                 [this](Duration window) { return nodes.of_leases().most_are_silent(window); }),
      windows(shared.loop, shared.log),
      guard(std::move(guard_of)) {}

Manager::Rescue::Rescue(const cache::Informer::Dependencies& shared, rescue::Config config,
                        const Dependencies& deps, Observed& observed,
                        membership::Membership& membership)
    : pods(shared, rescue::rescue_pod_kind(), config.namespaces),
      controller({shared.loop, shared.client, shared.log, deps.telemetry, deps.events, pods,
                  observed.nodes, observed.windows, membership},
                 std::move(config)) {}

Manager::Manager(Dependencies deps, Config config, controller::ReconcilePool::Metrics metrics)
    : loop_(deps.loop),
      log_(deps.log),
      caches_({loop_, deps.client, deps.random, log_}, config.namespaces),
      observed_(
          {loop_, deps.client, deps.random, log_}, caches_.pods, config.namespaces,
          [this](const auto& lease) { return job_controller_.is_worked_on(lease); },
          make_guard(deps, config)),
      watched_shards_({loop_, watched_parts(),
                       [this](const std::set<int>& shards, const std::string& watched) {
                         log_.info("the jobs and pods of shards are listed",
                                   {{"shards", std::to_string(shards.size())},
                                    {"namespace", watched},
                                    {"jobs", std::to_string(caches_.jobs.store().size())},
                                    {"pods", std::to_string(caches_.pods.store().size())}});
                         queue_controller_.begin_shards(shards, watched);
                         for (const int shard : shards) pool_controller_.look_at_all(shard);
                         job_controller_.begin_shards(shards, watched);
                         if (lane_) lane_->controller->look_at_all_of(shards);
                       }},
                      config.membership.shards, config.namespaces),
      membership_({loop_, deps.client, deps.random, log_}, config.membership,
                  membership_handlers(deps.telemetry, std::move(config.refuse))),
      readings_({loop_,
                 log_,
                 {&observed_.nodes.nodes(), &observed_.nodes.leases(), &membership_.leases()},
                 {&caches_.jobs, &caches_.pods, &observed_.heartbeats.leases()}},
                config.namespaces,
                [this](const std::string& watched) { job_controller_.begin_namespace(watched); }),
      queue_controller_({loop_, deps.client, log_, deps.telemetry, caches_.jobs, caches_.pods,
                         caches_.queues, membership_, watched_shards_,
                         [this](const std::string& key, controller::Priority priority) {
                           job_controller_.queue().add(key, priority);
                         },
                         [this](const codecs::CachedJob& job, const reconciler::Run& run) {
                           return pool_controller_.places().at(job, run).left;
                         },
                         [this] { return guard_view(); }}),
      pool_controller_({loop_, deps.client, log_, deps.telemetry, deps.events,
                        pools::PoolCaches{caches_.jobs, caches_.worker_pools, caches_.worker_pods,
                                          caches_.worker_leases, watched_shards_},
                        observed_.windows, membership_,
                        [this](const std::string& key, controller::Priority priority) {
                          job_controller_.queue().add(key, priority);
                        }},
                       {config.namespaces, config.jobs.agent_image}),
      notifier_({loop_, deps.random, log_, deps.client.server_clock(), deps.telemetry,
                 [this](const std::string& key) { return membership_.holds(key); },
                 [this](const std::string& key) {
                   job_controller_.queue().add(key, controller::Priority::kFresh);
                 },
                 deps.poster, deps.files},
                std::move(config.targets)),
      job_controller_({loop_, deps.client, deps.random, log_, deps.telemetry, deps.events,
                       caches_.jobs, caches_.pods, observed_.nodes, observed_.heartbeats,
                       observed_.windows, membership_, readings_, watched_shards_,
                       jobs::JobNeighbours(queue_controller_.permits(), &pool_controller_.places(),
                                           &notifier_, observed_.guard.get(),
                                           [this](const codecs::CachedJob& job) {
                                             if (job.source.empty()) return jobs::Mirror::kDone;
                                             return lane_ ? lane_->controller->mirror_of(job)
                                                          : jobs::Mirror::kNothing;
                                           })},
                      of_namespaces(std::move(config.jobs), config.namespaces),
                      std::move(metrics)) {
  controllers_.add(queue_controller_);
  controllers_.add(pool_controller_);
  controllers_.add(job_controller_);
  if (config.batch_jobs) make_lane(deps, *config.batch_jobs, config.namespaces);
  if (config.rescue) {
    config.rescue->shards = config.membership.shards;
    rescue_ = std::make_unique<Rescue>(
        cache::Informer::Dependencies{loop_, deps.client, deps.random, log_},
        std::move(*config.rescue), deps, observed_, membership_);
    controllers_.add(rescue_->controller);
  }
  // The reflectors' back-offs may have grown to 30 s, in which they would see nothing.
  observed_.nodes.on_answers_again([this] {
    for (cache::Informer* informer : informers()) informer->server_answers();
  });
  for (cache::Informer* informer : {&caches_.jobs, &caches_.pods, &observed_.heartbeats.leases()}) {
    informer->on_progress([this] {
      look_for_time_travel();
      controllers_.on_progress();
    });
  }
  caches_.queues.on_progress([this] { look_for_time_travel(); });
  for (cache::Informer* informer :
       {&caches_.worker_pools, &caches_.worker_pods, &caches_.worker_leases}) {
    informer->on_progress([this] {
      look_for_time_travel();
      pool_controller_.on_progress();
    });
  }
}

std::vector<jobs::WatchedShards::Part> Manager::watched_parts() {
  using jobs::WatchedShards;
  const auto by_job_shard = [](const std::set<int>& selected, int shards) {
    return jobs::by_job_shard(codecs::kUnsettled, selected, shards);
  };
  return {
      WatchedShards::part<codecs::CachedPod>(
          caches_.pods, jobs::by_shard_label, [](const auto& pod) { return pod.pod.shard_label; },
          [this](const auto& pod) { job_controller_.drop_pod(pod); }),
      WatchedShards::part<codecs::CachedHeartbeat>(
          observed_.heartbeats.leases(), jobs::by_shard_label,
          [](const auto& lease) { return lease.shard_label; },
          [this](const auto& lease) { observed_.heartbeats.drop(lease); }),
      // To whoever hears of it, a job of another replica may as well be gone.
      {caches_.jobs, by_job_shard,
       [](const kube::ObjectPtr& job) {
         return kube::as<codecs::CachedJob>(job)->job.status.shard;
       },
       [this](const kube::ObjectPtr& job) { caches_.jobs.report_gone(job); }}};
}

// What the guard holds, or no longer holds.
void Manager::look_at_held() {
  const std::set<int> shards = membership_.held_shards();
  for (const int shard : shards) queue_controller_.look_at_all(shard);
  if (lane_) lane_->controller->look_at_all_of(shards);
  job_controller_.look_at_unfinished();
}

std::unique_ptr<observe::Guard> Manager::make_guard(const Dependencies& deps,
                                                    const Config& config) {
  if (!config.guard) return nullptr;
  // All replicas see the same, and one says it.
  const auto tell = [this, &events = deps.events,
                     lease = events::ObjectReference{
                         "coordination.k8s.io/v1", "Lease", config.membership.namespace_,
                         membership::shard_lease_name(0), ""}](const std::string& fault) {
    if (!membership_.holds_shard(0)) return;
    events.record(lease, /*warning=*/true, reconciler::to_string(reconciler::Reason::kGuardMissing),
                  "Hold", "no new attempt starts: " + fault);
  };
  return std::make_unique<observe::Guard>(
      observe::Guard::Dependencies{loop_, deps.client, log_, config.guard->version, tell,
                                   [this] { look_at_held(); }},
      config.guard->required);
}

void Manager::make_lane(Dependencies& deps, const Config::BatchJobs& lane,
                        const std::vector<std::string>& namespaces) {
  const cache::Informer::Dependencies shared{loop_, deps.client, deps.random, log_};
  lane_ = std::make_unique<Lane>();
  lane_->jobs =
      std::make_unique<cache::Informer>(shared, lane_controller::batch_job_kind(), namespaces);
  if (!lane.selector.empty()) {
    lane_->namespaces = std::make_unique<cache::Informer>(
        shared, lane_controller::selected_namespace_kind(lane.selector),
        std::vector<std::string>{});
  }
  lane_->controller = std::make_unique<lane_controller::LaneController>(
      lane_controller::LaneController::Dependencies{
          loop_, deps.client, log_, deps.events, caches_.jobs, *lane_->jobs, caches_.pods,
          watched_shards_, lane_->namespaces.get(), membership_, namespaces.empty(),
          [this] { return guard_view(); },
          [this](const std::string& key) { job_controller_.queue().add(key); },
          [this](const std::string& key) { job_controller_.look_for(key); }});
  controllers_.add(*lane_->controller);
}

membership::OwnershipReport Manager::ownership() {
  membership::OwnershipReport report = membership_.report();
  int shard = 0;
  for (membership::OwnershipReport::Shard& one : report.shards) {
    const bool is_read = watched_shards_.read(shard++);
    if (one.held && !is_read)
      one.why = "held, and its jobs wait until they and their pods are listed";
  }
  return report;
}

std::vector<cache::Informer*> Manager::informers() {
  std::vector<cache::Informer*> all = needed();
  for (cache::Informer* informer :
       {&caches_.queues, &caches_.worker_pools, &caches_.worker_pods, &caches_.worker_leases}) {
    all.push_back(informer);
  }
  if (lane_) all.push_back(lane_->jobs.get());
  if (lane_ && lane_->namespaces) all.push_back(lane_->namespaces.get());
  if (rescue_) all.push_back(&rescue_->pods);
  return all;
}

std::vector<cache::Informer*> Manager::needed() {
  return {&caches_.jobs,
          &caches_.pods,
          &observed_.nodes.nodes(),
          &observed_.nodes.leases(),
          &observed_.heartbeats.leases(),
          &membership_.leases()};
}

void Manager::start() {
  caches_.start();
  if (lane_) lane_->jobs->start();
  if (lane_ && lane_->namespaces) lane_->namespaces->start();
  if (rescue_) rescue_->pods.start();
  observed_.nodes.start();
  observed_.heartbeats.leases().start();
  membership_.leases().start();
  if (observed_.guard) observed_.guard->start();
  readings_.begin([this] { begin(); });
}

void Manager::begin() {
  log_.info("caches are synced", {{"jobs", std::to_string(caches_.jobs.store().size())},
                                  {"pods", std::to_string(caches_.pods.store().size())}});
  membership_.join();
  controllers_.begin();
}

void Manager::stop(std::function<void()> stopped) {
  readings_.stop();
  if (observed_.guard) observed_.guard->stop();
  notifier_.stop();
  membership_.take_no_more();
  controllers_.stop([this, stopped = std::move(stopped)] {
    membership_.leave([this, stopped] {
      for (cache::Informer* informer : informers()) informer->stop();
      stopped();
    });
  });
}

membership::Membership::Handlers Manager::membership_handlers(jobs::Telemetry& telemetry,
                                                              std::function<void(Error)> refuse) {
  membership::Membership::Handlers handlers;
  handlers.gained = [this, &telemetry](int shard) {
    telemetry.shard_moved("gained");
    controllers_.look_at_all(shard);
  };
  handlers.kept = [this](int shard) { controllers_.look_at_all(shard); };
  handlers.lost = [this, &telemetry](int shard, const char* why) {
    telemetry.shard_moved(why);
    job_controller_.lost(shard);
  };
  handlers.draining = [this](int) { job_controller_.hand_over_soon(); };
  handlers.refresh = [this](std::function<void()> done) { refresh(std::move(done)); };
  handlers.unseen = [this](Duration patience) { return unseen(patience); };
  handlers.proof = [this] {
    observed_.nodes.proof();
    observed_.heartbeats.proof();
    pool_controller_.proof();
  };
  handlers.wanted = [this](const std::set<int>& shards) { watched_shards_.want(shards); };
  handlers.record = [this](int shard) -> std::optional<std::string> {
    if (!watched_shards_.read(shard)) return std::nullopt;
    return observed_.windows.record(shard);
  };
  handlers.recorded = [this](const std::string& text) { observed_.windows.carry(text); };
  handlers.refuse = [refuse = std::move(refuse)](Error error) {
    if (refuse) refuse(std::move(error));
  };
  return handlers;
}

void Manager::refresh(std::function<void()> done) {
  for (cache::Informer* informer : informers()) informer->refresh();
  if (!controllers_.stopping()) readings_.begin(std::move(done));
}

std::string Manager::unseen(Duration patience) {
  for (cache::Informer* informer : needed()) {
    if (informer->live() || loop_.now() - informer->live_changed_at() < patience) continue;
    if (watched_shards_.watches(*informer) && watched_shards_.lists()) continue;
    const std::string trouble = informer->trouble();
    const std::string what = informer->kind().name + " cannot be watched: " + trouble;
    return as_utf8(what.substr(0, kMaxReasonBytes));
  }
  return "";
}

void Manager::look_for_time_travel() {
  if (time_travel_.noticed(informers())) on_time_travel();
}

// The server's data was set back: our own writes may never show, and other caches may be newer than
// the data. Runs once for a restore: an informer that has noticed it does not list again.
void Manager::on_time_travel() {
  log_.error(
      "the API server's data was set back (restored from a snapshot?); checking all jobs again");
  controllers_.time_travelled();
  membership_.time_travelled();
  time_travel_.relist_others(informers());
}

}  // namespace holdfast::runtime
