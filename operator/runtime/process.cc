#include "operator/runtime/process.h"

#include <algorithm>
#include <random>
#include <utility>

#include "operator/runtime/descriptors.h"
#include "operator/runtime/observer_session.h"
#include "operator/runtime/process_stats.h"
#include "operator/runtime/session.h"

namespace holdfast::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kTick{1};
constexpr minutes kTrim{1};
// Kubernetes gives a pod 30 s.
constexpr seconds kStopLimit{28};

}  // namespace

Process::Process(Options options, Log log)
    : options_(std::move(options)),
      log_(std::move(log)),
      random_((static_cast<std::uint64_t>(std::random_device{}()) << 32) ^ std::random_device{}()),
      health_(loop_.now()),
      sync_(log_) {}

Process::~Process() = default;

int Process::run() {
  const auto stop = [this](const std::string& name) {
    loop_.post([this, name] { begin_stop(name, 0); });
  };
  signals_ = std::make_unique<StopSignals>(stop, kStopLimit, log_);
  raise_descriptor_limit(descriptor_use(options_, 1), log_);
  metrics_ = std::make_unique<Metrics>(options_.workers);
  probes_ = std::make_unique<ProbeServer>(probe_handlers());
  const Result<> serving = serve_probes();
  if (!serving.ok()) {
    log_.error("cannot start", {{"error", serving.error().message}});
    return kExitFailed;
  }
  loop_.post([this] { start(); });
  loop_.run();
  probes_->stop();
  log_.info("stopped", {{"exit_code", std::to_string(exit_code_)}});
  return exit_code_;
}

Result<> Process::serve_probes() {
  const ListenAddress& address = options_.metrics_address;
  if (!address.enabled) return Unit{};
  Result<> listening = probes_->start(address.host, address.port);
  if (listening.ok()) log_.info("serving probes and metrics", {{"address", probes_->address()}});
  return listening;
}

void Process::start() {
  if (stopping_) return;
  sync_.begin(loop_.now());
  Work::Dependencies dependencies{loop_,
                                  random_,
                                  log_,
                                  *metrics_,
                                  request_observer(),
                                  [this](const Error& error) { refuse(error); }};
  const bool observes = options_.rescue.mode == Options::Rescue::Mode::kObserve;
  const auto connect = observes ? &ObserverSession::connect : &Session::connect;
  Result<std::unique_ptr<Work>> connected = connect(std::move(dependencies), options_);
  if (!connected.ok()) {
    log_.error("cannot start", {{"error", connected.error().message}});
    begin_stop("it could not start", kExitFailed);
    return;
  }
  work_ = std::move(*connected);
  work_->start();
  tick();
}

// In a later turn, so that the caller finishes first.
void Process::refuse(const Error& error) {
  loop_.post([this, message = error.message] {
    if (stopping_) return;
    log_.error("cannot work", {{"error", message}});
    begin_stop("it cannot work here", kExitFailed);
  });
}

// ---- While it runs.

void Process::tick() {
  if (!work_) return;  // stopped
  health_.beat(loop_.now(), work_->health(loop_.now()), answered_at_);
  if (!stopping_) look_at_caches();
  if (loop_.now() - last_trim_ >= kTrim) {
    last_trim_ = loop_.now();
    return_freed_memory();
  }
  loop_.call_after(kTick, [this] { tick(); });
}

void Process::look_at_caches() {
  const FirstSync::Seen seen = sync_.look(*work_, loop_.now());
  if (seen.is_ready) work_->on_ready();
  if (seen.too_late) begin_stop(*seen.too_late, kExitFailed);
}

// ---- The stop.

void Process::begin_stop(const std::string& why, int exit_code) {
  if (std::exchange(stopping_, true)) return;
  exit_code_ = exit_code;
  log_.info("stopping", {{"why", why}});
  signals_->stop_has_begun();
  health_.stopping();
  if (!work_) {
    loop_.stop();
    return;
  }
  work_->stop([this] {
    work_.reset();
    loop_.post([this] { loop_.stop(); });  // after the callbacks that they posted
  });
}

// ---- What the others ask.

std::map<std::string, ProbeServer::Handler> Process::probe_handlers() {
  return {
      {"/healthz", answer_at_once([this] { return health_.healthz(loop_.now()); })},
      {"/readyz", answer_at_once([this] { return health_.readyz(); })},
      {"/metrics",
       [this](ProbeServer::Answer answer) {
         loop_.post([this, answer = std::move(answer)] {
           answer({200, metrics_->text(), kMetricsContentType});
         });
       }},
      {"/debug/ownership",
       [this](ProbeServer::Answer answer) {
         loop_.post([this, answer = std::move(answer)] {
           if (!work_) return answer({503, "not connected yet\n"});
           answer({200, work_->ownership(), "application/json"});
         });
       }},
  };
}

kube::RequestObserver Process::request_observer() {
  kube::RequestObserver counted = metrics_->request_observer();
  return {[this, count = std::move(counted.on_request)](const std::string& verb, int code,
                                                        Duration took) {
    // Any answer except the server's own errors. The probe of the API server gets a 404.
    if (code >= 200 && code < 500 && code != 429) answered_at_ = loop_.now();
    count(verb, code, took);
  }};
}

}  // namespace holdfast::runtime
