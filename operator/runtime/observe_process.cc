#include "operator/runtime/observe_process.h"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "client/kube/connection.h"
#include "core/random.h"
#include "core/real_loop.h"
#include "operator/rescue/observer.h"
#include "operator/runtime/health.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/probe_server.h"
#include "operator/runtime/signals.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

using std::chrono::seconds;

constexpr seconds kTick{1};
constexpr seconds kStopLimit{28};
constexpr seconds kLeaveLimit{5};
constexpr std::chrono::milliseconds kIdlePoll{5};

class ObserveProcess {
 public:
  ObserveProcess(const Options& options, Log log)
      : options_(options),
        log_(std::move(log)),
        random_((static_cast<std::uint64_t>(std::random_device{}()) << 32) ^
                std::random_device{}()),
        health_(loop_.now()),
        metrics_(options.workers) {}

  int run() {
    const auto stop = [this](const std::string& name) {
      loop_.post([this, name] { begin_stop(name, 0); });
    };
    signals_ = std::make_unique<StopSignals>(stop, kStopLimit, log_);
    probes_ = std::make_unique<ProbeServer>(handlers());
    const ListenAddress& address = options_.metrics_address;
    const Result<> serving =
        address.enabled ? probes_->start(address.host, address.port) : Result<>(Unit{});
    if (!serving) {
      log_.error("cannot start", {{"error", serving.error().message}});
      return kExitFailed;
    }
    if (address.enabled) {
      log_.info("serving probes and metrics", {{"address", probes_->address()}});
    }
    loop_.post([this] { start(); });
    loop_.run();
    probes_->stop();
    log_.info("stopped", {{"exit_code", std::to_string(exit_code_)}});
    return exit_code_;
  }

 private:
  void start() {
    kube::ConnectOptions how;
    how.kubeconfig = options_.api.kubeconfig;
    how.qps = options_.api.qps;
    how.user_agent = std::string("holdfast-operator/") + kVersion;
    auto connection = kube::Connection::connect({loop_, random_, log_, observer()}, how);
    if (!connection) {
      log_.error("cannot start", {{"error", connection.error().message}});
      return begin_stop("it could not start", kExitFailed);
    }
    connection_ = std::move(*connection);
    log_.info("using the API server",
              {{"server", connection_->server()}, {"from", connection_->origin()}});
    const auto& rescue = options_.rescue;
    observer_ = std::make_unique<rescue::Observer>(
        cache::Informer::Dependencies{loop_, connection_->client(), random_, log_},
        rescue::Observer::Config{
            options_.replica.namespace_,
            options_.replica.id + "-" + std::to_string(random_.below(1'000'000)),
            options_.replica.timings,
            rescue.namespaces.empty() ? options_.watch_namespaces : rescue.namespaces,
            rescue.owners});
    observer_->start();
    tick();
  }

  void tick() {
    if (!observer_) return;
    std::vector<WatchHealth> watches;
    const SteadyTime now = loop_.now();
    for (cache::Informer* const informer : observer_->informers()) {
      watches.push_back({informer->kind().name, informer->synced(), informer->live(),
                         informer->quiet_for(), now - informer->live_changed_at()});
    }
    health_.beat(now, watches, answered_at_);
    loop_.call_after(kTick, [this] { tick(); });
  }

  void begin_stop(const std::string& why, int exit_code) {
    if (std::exchange(stopping_, true)) return;
    exit_code_ = exit_code;
    log_.info("stopping", {{"why", why}});
    signals_->stop_has_begun();
    health_.stopping();
    if (!observer_) return loop_.stop();
    // A Lease that cannot be freed is taken over after its duration.
    loop_.call_after(kLeaveLimit, [this] { connection_->shut_down(); });
    observer_->stop([this] {
      connection_->shut_down();
      end_when_idle();
    });
  }

  void end_when_idle() {
    if (!connection_->client().idle()) {
      loop_.call_after(kIdlePoll, [this] { end_when_idle(); });
      return;
    }
    observer_.reset();
    connection_.reset();
    loop_.post([this] { loop_.stop(); });
  }

  std::map<std::string, ProbeServer::Handler> handlers() {
    return {{"/healthz", answer_at_once([this] { return health_.healthz(loop_.now()); })},
            {"/readyz", answer_at_once([this] { return health_.readyz(); })},
            {"/metrics", [this](ProbeServer::Answer answer) {
               loop_.post([this, answer = std::move(answer)] {
                 answer({200, metrics_.text(), kMetricsContentType});
               });
             }}};
  }

  kube::RequestObserver observer() {
    return {[this, count = metrics_.request_observer().on_request](const std::string& verb,
                                                                   int code, Duration took) {
      if (code >= 200 && code < 500 && code != 429) answered_at_ = loop_.now();
      count(verb, code, took);
    }};
  }

  const Options& options_;
  const Log log_;
  RealLoop loop_;
  SeededRandom random_;
  Health health_;
  Metrics metrics_;
  std::unique_ptr<ProbeServer> probes_;
  std::unique_ptr<kube::Connection> connection_;
  std::unique_ptr<rescue::Observer> observer_;
  std::unique_ptr<StopSignals> signals_;
  std::optional<SteadyTime> answered_at_;
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace

int run_observer(const Options& options, const Log& log) {
  ObserveProcess process(options, log);
  return process.run();
}

}  // namespace holdfast::runtime
