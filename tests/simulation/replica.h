// One process of the operator in the simulated world: all parts of runtime::Process except sockets,
// signals and probes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/kube/client.h"
#include "client/kube/credentials.h"
#include "core/random.h"
#include "operator/events/events.h"
#include "operator/runtime/manager.h"
#include "tests/simulation/network.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class Replica : private jobs::Telemetry {
 public:
  struct Config {
    int index = 0;
    std::uint64_t life = 0;  // rises with each start
    std::uint64_t seed = 0;
    SimLoop::Clock clock;
    int shards = 8;
    bool batch_jobs = false;  // it runs batch/v1 Jobs
    bool requires_guard = false;
    bool rescues = false;                 // other controllers' pods
    std::vector<std::string> namespaces;  // empty: all
    Log log;
    std::function<void()> on_hot_loop;
    std::function<void()> on_exception;  // of a reconcile: a broken invariant, mostly
    std::function<void(Error)> on_refusal;
    // An optional transport between the client and the network.
    std::function<std::unique_ptr<http::Transport>(Loop&, http::Transport&)> between = nullptr;
    Receivers* receivers = nullptr;  // of its notifications; never null
  };
  Replica(Scheduler& scheduler, Network& network, Config config);
  // A crash. Requests that it has sent may still arrive.
  ~Replica() override;

  void pause() { loop_.pause(); }
  void resume() { loop_.resume(); }
  bool paused() const { return loop_.paused(); }
  // A clean stop, as on SIGTERM. `stopped` runs when the process would exit.
  void stop(std::function<void()> stopped);

  int index() const { return config_.index; }
  std::uint64_t life() const { return config_.life; }
  Duration started_at() const { return started_at_; }
  bool synced() const { return manager_->synced(); }
  std::int64_t rate_ppm() const { return config_.clock.rate_ppm; }
  // The size of its memory, which must not grow with time.
  std::size_t objects_held();
  std::size_t jobs_held() { return manager_->needed().front()->store().size(); }
  // Its server's clock shows less than at the last look.
  bool time_fell();
  std::size_t queued() { return manager_->jobs().queue().depth(); }
  Duration oldest_overdue() const { return manager_->jobs().oldest_overdue(); }
  // The reported values of the metric.
  std::vector<std::pair<std::string, Duration>> recoveries;

 private:
  void end_when_idle();
  void attempt_ended(const std::string&, const std::string&) override {}
  void stage_ended(const std::string&, std::optional<Duration>) override {}
  void recovered(const std::string&, reconciler::OrphanClass orphan_class, Duration took) override {
    recoveries.emplace_back(to_string(orphan_class), took);
  }
  void fenced_outcome(const std::string&) override {}
  void admitted(const std::string&, const std::string&, Duration) override {}
  void shard_moved(const std::string&) override {}

  Scheduler& scheduler_;
  const Config config_;
  const Duration started_at_;
  SimLoop loop_;
  SeededRandom random_;
  kube::FixedCredentials credentials_;
  // In start order; destroyed in reverse.
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<http::Transport> between_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<events::EventRecorder> events_;
  std::unique_ptr<SimPoster> poster_;
  std::unique_ptr<runtime::Manager> manager_;
  std::function<void()> stopped_;
  Time looked_at_{};  // the server's time at the last look
  bool stopping_ = false;
  bool manager_stopped_ = false;
};

}  // namespace holdfast::simulation
