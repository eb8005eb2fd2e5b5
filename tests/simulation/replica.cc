#include "tests/simulation/replica.h"

#include <cassert>
#include <utility>

namespace holdfast::simulation {
namespace {

// As in runtime/process.cc.
constexpr std::chrono::seconds kLeaveLimit{15};
constexpr std::chrono::milliseconds kIdlePoll{5};

}  // namespace

Replica::Replica(Scheduler& scheduler, Network& network, Config config)
    : scheduler_(scheduler),
      config_(std::move(config)),
      started_at_(scheduler.now()),
      loop_(scheduler, config_.clock, config_.on_hot_loop),
      random_(config_.seed),
      credentials_(loop_, "") {
  const std::string name = "holdfast-" + std::to_string(config_.index);
  transport_ = std::make_unique<SimTransport>(network, loop_, config_.index, config_.life);
  if (config_.between) between_ = config_.between(loop_, *transport_);
  http::Transport& wire = between_ ? *between_ : static_cast<http::Transport&>(*transport_);
  client_ = std::make_unique<kube::Client>(
      kube::Client::Dependencies{loop_, wire, credentials_, random_, config_.log, {}, name, 0});
  events_ = std::make_unique<events::EventRecorder>(loop_, *client_, name, config_.log);
  poster_ = std::make_unique<SimPoster>(scheduler, loop_, *config_.receivers, config_.seed);
  runtime::Manager::Config manager;
  manager.targets = Receivers::targets();
  manager.membership.id = name;
  manager.membership.shards = config_.shards;
  manager.namespaces = config_.namespaces;
  manager.jobs.agent_image = "agent";
  manager.refuse = config_.on_refusal;
  if (config_.batch_jobs) manager.batch_jobs.emplace();
  if (config_.rescues) manager.rescue.emplace();
  if (config_.requires_guard) manager.guard = {true, "0.1.0"};
  controller::ReconcilePool::Metrics metrics;
  metrics.on_exception = config_.on_exception;
  manager_ = std::make_unique<runtime::Manager>(
      runtime::Manager::Dependencies{loop_, *client_, random_, config_.log, *this, *events_,
                                     *poster_, sim_secrets()},
      std::move(manager), std::move(metrics));
  loop_.post([this] { manager_->start(); });
}

Replica::~Replica() {
  loop_.detach();
  loop_.run_as_loop([this] {
    transport_->die();
    // It may be stopping already.
    if (!std::exchange(stopping_, true)) manager_->stop([] {});
    events_->stop();
    client_->shut_down();
  });
  // Every call answers that it is cancelled: coroutines run to their end, nothing is left behind.
  loop_.run_posted();
  assert(client_->idle());
  assert(transport_->open_calls() == 0);
  loop_.run_as_loop([this] {
    manager_.reset();
    poster_.reset();
    events_.reset();
    client_.reset();
  });
  loop_.run_posted();
  between_.reset();
  transport_.reset();
}

void Replica::stop(std::function<void()> stopped) {
  loop_.post([this, stopped = std::move(stopped)]() mutable {
    if (std::exchange(stopping_, true)) return;
    stopped_ = std::move(stopped);
    const auto manager_stopped = [this] {
      if (std::exchange(manager_stopped_, true)) return;
      events_->stop();
      client_->shut_down();
      end_when_idle();
    };
    loop_.call_after(kLeaveLimit, [this] {
      if (!manager_stopped_) client_->shut_down();
    });
    manager_->stop(manager_stopped);
  });
}

void Replica::end_when_idle() {
  if (!client_->idle()) {
    loop_.call_after(kIdlePoll, [this] { end_when_idle(); });
    return;
  }
  // The world destroys the process, not from inside one of its turns.
  scheduler_.after(Duration::zero(), std::exchange(stopped_, nullptr));
}

bool Replica::time_fell() {
  const ServerClock& clock = client_->server_clock();
  if (!clock.known()) return false;
  const Time now = clock.now(loop_.now());
  return now < std::exchange(looked_at_, now);
}

std::size_t Replica::objects_held() {
  std::size_t count = 0;
  for (cache::Informer* const informer : manager_->informers()) count += informer->store().size();
  return count;
}

}  // namespace holdfast::simulation
