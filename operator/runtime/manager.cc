#include "operator/runtime/manager.h"

#include <utility>

#include "core/json.h"

namespace holdfast::runtime {
namespace {

// The limit of a reason in an annotation.
constexpr std::size_t kMaxReasonBytes = 256;

controller::JobController::Config of_namespaces(controller::JobController::Config config,
                                                const std::vector<std::string>& namespaces) {
  config.namespaces = namespaces;
  return config;
}

}  // namespace

Manager::Manager(Dependencies deps, Config config, controller::ReconcilePool::Metrics metrics)
    : loop_(deps.loop),
      log_(deps.log),
      telemetry_(deps.telemetry),
      jobs_({loop_, deps.client, deps.random, log_}, controller::job_kind(), config.namespaces),
      pods_({loop_, deps.client, deps.random, log_}, controller::pod_kind(), config.namespaces),
      pod_shards_({loop_, pods_,
                   [this](const std::set<int>& shards, const std::string& watched) {
                     log_.info("the pods of shards are listed",
                               {{"shards", std::to_string(shards.size())},
                                {"namespace", watched},
                                {"pods", std::to_string(pods_.store().size())}});
                     queue_controller_.begin_pods(shards, watched);
                     job_controller_.begin_pods(shards, watched);
                     if (lane_controller_) lane_controller_->look_at_all_of(shards);
                   },
                   [this](const controller::CachedPod& pod) { job_controller_.drop_pod(pod); }},
                  config.membership.shards, config.namespaces),
      queues_({loop_, deps.client, deps.random, log_}, controller::queue_kind(), config.namespaces),
      worker_pools_({loop_, deps.client, deps.random, log_}, controller::pool_kind(),
                    config.namespaces),
      worker_pods_({loop_, deps.client, deps.random, log_}, controller::worker_pod_kind(),
                   config.namespaces),
      worker_leases_({loop_, deps.client, deps.random, log_}, controller::worker_lease_kind(),
                     config.namespaces),
      nodes_({loop_, deps.client, deps.random, log_, pods_, config.namespaces}),
      heartbeats_({loop_, deps.client, deps.random, log_}, config.namespaces,
                  [this](const auto& lease) { return job_controller_.is_worked_on(lease); }),
      windows_(loop_, log_),
      membership_({loop_, deps.client, deps.random, log_}, config.membership,
                  membership_handlers(std::move(config.refuse))),
      readings_({loop_,
                 log_,
                 {&nodes_.nodes(), &nodes_.leases(), &membership_.leases()},
                 {&jobs_, &pods_, &heartbeats_.leases()}},
                config.namespaces,
                [this](const std::string& watched) { job_controller_.begin_namespace(watched); }),
      queue_controller_({loop_, deps.client, log_, deps.telemetry, jobs_, pods_, queues_,
                         membership_, pod_shards_,
                         [this](const std::string& key, controller::Priority priority) {
                           job_controller_.queue().add(key, priority);
                         },
                         [this](const controller::CachedJob& job, const reconciler::Run& run) {
                           return pool_controller_.places().at(job, run).left;
                         }}),
      pool_controller_({loop_,
                        deps.client,
                        log_,
                        deps.telemetry,
                        deps.events,
                        {jobs_, worker_pools_, worker_pods_, worker_leases_},
                        windows_,
                        membership_,
                        [this](const std::string& key, controller::Priority priority) {
                          job_controller_.queue().add(key, priority);
                        }},
                       {config.namespaces, config.jobs.agent_image}),
      targets_(std::move(config.targets)),
      notifier_({loop_, deps.random, log_, deps.client.server_clock(), deps.telemetry,
                 [this](const std::string& key) { return membership_.holds(key); },
                 [this](const std::string& key) {
                   job_controller_.queue().add(key, controller::Priority::kFresh);
                 },
                 deps.poster, deps.files},
                targets_),
      job_controller_({loop_, deps.client, deps.random, log_, deps.telemetry, deps.events, jobs_,
                       pods_, nodes_, heartbeats_, windows_, membership_, readings_, pod_shards_,
                       queue_controller_, &pool_controller_.places(), &notifier_},
                      of_namespaces(std::move(config.jobs), config.namespaces),
                      std::move(metrics)) {
  controllers_ = {&queue_controller_, &pool_controller_, &job_controller_};
  if (config.batch_jobs) make_lane(deps, *config.batch_jobs, config.namespaces);
  // The reflectors' back-offs may have grown to 30 s, in which they would see nothing.
  nodes_.on_answers_again([this] {
    for (cache::Informer* informer : informers()) informer->server_answers();
  });
  for (cache::Informer* informer : {&jobs_, &pods_, &heartbeats_.leases()}) {
    informer->on_progress([this] {
      look_for_time_travel();
      for (controller::Controller* one : controllers_) one->on_progress();
    });
  }
  queues_.on_progress([this] { look_for_time_travel(); });
  for (cache::Informer* informer : {&worker_pools_, &worker_pods_, &worker_leases_}) {
    informer->on_progress([this] {
      look_for_time_travel();
      pool_controller_.on_progress();
    });
  }
}

void Manager::make_lane(Dependencies& deps, const Config::BatchJobs& lane,
                        const std::vector<std::string>& namespaces) {
  const cache::Informer::Dependencies shared{loop_, deps.client, deps.random, log_};
  batch_jobs_ = std::make_unique<cache::Informer>(shared, controller::batch_job_kind(), namespaces);
  if (!lane.selector.empty()) {
    batch_job_namespaces_ = std::make_unique<cache::Informer>(
        shared, controller::selected_namespace_kind(lane.selector), std::vector<std::string>{});
  }
  lane_controller_ =
      std::make_unique<controller::LaneController>(controller::LaneController::Dependencies{
          loop_, deps.client, log_, deps.events, jobs_, *batch_jobs_, pods_, pod_shards_,
          batch_job_namespaces_.get(), membership_, namespaces.empty()});
  controllers_.push_back(lane_controller_.get());
}

controller::OwnershipReport Manager::ownership() {
  controller::OwnershipReport report = membership_.report();
  int shard = 0;
  for (controller::OwnershipReport::Shard& one : report.shards) {
    const bool is_read = pod_shards_.read(shard++);
    if (one.held && !is_read) one.why = "held, and its jobs wait until its pods are listed";
  }
  return report;
}

std::vector<cache::Informer*> Manager::informers() {
  std::vector<cache::Informer*> all = needed();
  for (cache::Informer* informer : {&queues_, &worker_pools_, &worker_pods_, &worker_leases_}) {
    all.push_back(informer);
  }
  for (cache::Informer* informer : {batch_jobs_.get(), batch_job_namespaces_.get()}) {
    if (informer) all.push_back(informer);
  }
  return all;
}

std::vector<cache::Informer*> Manager::needed() {
  return {&jobs_,
          &pods_,
          &nodes_.nodes(),
          &nodes_.leases(),
          &heartbeats_.leases(),
          &membership_.leases()};
}

void Manager::start() {
  jobs_.start();
  pods_.start();
  queues_.start();
  worker_pools_.start();
  worker_pods_.start();
  worker_leases_.start();
  if (batch_jobs_) batch_jobs_->start();
  if (batch_job_namespaces_) batch_job_namespaces_->start();
  nodes_.start();
  heartbeats_.leases().start();
  membership_.leases().start();
  readings_.begin([this] { begin(); });
}

void Manager::begin() {
  started_ = true;
  log_.info("caches are synced", {{"jobs", std::to_string(jobs_.store().size())},
                                  {"pods", std::to_string(pods_.store().size())}});
  membership_.join();
  for (controller::Controller* one : controllers_) one->begin();
}

void Manager::stop(std::function<void()> stopped) {
  stopping_ = true;
  readings_.stop();
  notifier_.stop();
  membership_.take_no_more();
  to_stop_ = controllers_.size();
  const auto one_stopped = [this, stopped = std::move(stopped)] {
    if (--to_stop_ > 0) return;
    membership_.leave([this, stopped] {
      for (cache::Informer* informer : informers()) informer->stop();
      stopped();
    });
  };
  for (controller::Controller* one : controllers_) one->stop(one_stopped);
}

controller::Membership::Handlers Manager::membership_handlers(std::function<void(Error)> refuse) {
  controller::Membership::Handlers handlers;
  handlers.gained = [this](int shard) {
    telemetry_.shard_moved("gained");
    look_at_all(shard);
  };
  handlers.kept = [this](int shard) { look_at_all(shard); };
  handlers.lost = [this](int shard, const char* why) {
    telemetry_.shard_moved(why);
    job_controller_.lost(shard);
  };
  handlers.draining = [this](int) { job_controller_.hand_over_soon(); };
  handlers.refresh = [this](std::function<void()> done) { refresh(std::move(done)); };
  handlers.unseen = [this](Duration patience) { return unseen(patience); };
  handlers.proof = [this] {
    nodes_.proof();
    heartbeats_.proof();
    pool_controller_.proof();
  };
  handlers.wanted = [this](const std::set<int>& shards) { pod_shards_.want(shards); };
  handlers.record = [this](int shard) -> std::optional<std::string> {
    if (!pod_shards_.read(shard)) return std::nullopt;
    return windows_.record(shard);
  };
  handlers.recorded = [this](const std::string& text) { windows_.carry(text); };
  handlers.refuse = [refuse = std::move(refuse)](Error error) {
    if (refuse) refuse(std::move(error));
  };
  return handlers;
}

void Manager::look_at_all(int shard) {
  for (controller::Controller* one : controllers_) one->look_at_all(shard);
}

void Manager::refresh(std::function<void()> done) {
  for (cache::Informer* informer : informers()) informer->refresh();
  if (!stopping_) readings_.begin(std::move(done));
}

std::string Manager::unseen(Duration patience) {
  for (cache::Informer* informer : needed()) {
    if (informer->live() || loop_.now() - informer->live_changed_at() < patience) continue;
    if (informer == &pods_ && pod_shards_.lists()) continue;
    const std::string trouble = informer->trouble();
    const std::string what = informer->kind().name + " cannot be watched: " + trouble;
    return as_utf8(what.substr(0, kMaxReasonBytes));
  }
  return "";
}

void Manager::look_for_time_travel() {
  std::uint64_t travels = 0;
  for (cache::Informer* informer : informers()) travels += informer->time_travels();
  if (std::exchange(time_travels_, travels) != travels) on_time_travel();
}

// The server's data was set back: our own writes may never show, and other caches may be newer than
// the data. Runs once for a restore: an informer that has noticed it does not list again.
void Manager::on_time_travel() {
  log_.error(
      "the API server's data was set back (restored from a snapshot?); checking all jobs again");
  for (controller::Controller* one : controllers_) one->time_travelled();
  membership_.time_travelled();
  for (cache::Informer* informer : informers()) {
    std::uint64_t& seen = travelled_[informer];
    if (informer->time_travels() == seen) informer->relist();
    seen = informer->time_travels();
  }
}

}  // namespace holdfast::runtime
