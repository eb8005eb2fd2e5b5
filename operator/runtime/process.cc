#include "operator/runtime/process.h"

#include <algorithm>
#include <random>
#include <utility>

#include "operator/jobs/lanes.h"
#include "operator/runtime/descriptors.h"
#include "operator/runtime/fence_check.h"
#include "operator/runtime/ownership_json.h"
#include "operator/runtime/process_stats.h"
#include "operator/runtime/sync_report.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kTick{1};
constexpr minutes kTrim{1};
constexpr minutes kSyncLimit{2};
// Long enough for the pages of long lists.
constexpr minutes kLongSyncLimit{10};
constexpr seconds kSyncReport{20};
// Kubernetes gives a pod 30 s. Requests that still hang after half of it are cancelled, before the
// kubelet kills the process.
constexpr seconds kLeaveLimit{15};
constexpr seconds kStopLimit{28};
constexpr seconds kIdleLimit{3};
constexpr milliseconds kIdlePoll{5};

// There may be twice as many reconciles, and as many creations, as workers. Reconciles of jobs with
// many runs have lanes beside. The rest is for lists, Events and shards. So a request never waits
// for another namespace's.
std::size_t ordinary_requests(const Options& options) {
  return 4 * static_cast<std::size_t>(options.workers) + 2 * std::size_t{controller::kLanes} +
         2 * std::size_t{controller::kQueueWorkers} + 32;
}

// Whether a proxy is used for a target depends on NO_PROXY, too: this counts the worst case.
bool has_https_proxy() {
  return !http::process_environment("HTTPS_PROXY").empty() ||
         !http::process_environment("https_proxy").empty();
}

DescriptorUse descriptor_use(const Options& options, std::uint64_t per_connection) {
  DescriptorUse use;
  use.namespaces = options.watch_namespaces.size();
  use.requests = ordinary_requests(options) + 2 * http::CpprestTransport::Config().reserved;
  use.batch_jobs = !options.batch_jobs.empty();
  use.per_connection = per_connection;
  use.targets = options.notifications.empty() ? 0 : notify::kTargetLimit;
  use.targets_through_proxy = has_https_proxy();
  return use;
}

std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

}  // namespace

Process::Process(Options options, Log log)
    : options_(std::move(options)),
      log_(std::move(log)),
      random_((static_cast<std::uint64_t>(std::random_device{}()) << 32) ^ std::random_device{}()),
      health_(loop_.now()) {}

Process::~Process() = default;

int Process::run() {
  const auto stop = [this](const std::string& name) {
    loop_.post([this, name] { begin_stop(name, 0); });
  };
  signals_ = std::make_unique<StopSignals>(stop, kStopLimit, log_);
  raise_descriptor_limit(descriptor_use(options_, 1), log_);
  metrics_ = std::make_unique<Metrics>(options_.workers);
  probes_ = std::make_unique<ProbeServer>(probe_handlers());
  const Status serving = serve_probes();
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

Status Process::serve_probes() {
  const ListenAddress& address = options_.metrics_address;
  if (!address.enabled) return Unit{};
  Status listening = probes_->start(address.host, address.port);
  if (listening.ok()) log_.info("serving probes and metrics", {{"address", probes_->address()}});
  return listening;
}

void Process::start() {
  if (stopping_) return;
  started_at_ = last_report_ = loop_.now();
  const Status connected = connect();
  if (!connected.ok()) {
    log_.error("cannot start", {{"error", connected.error().message}});
    begin_stop("it could not start", kExitFailed);
    return;
  }
  manager_->start();
  tick();
}

Result<notify::Targets> Process::read_targets() const {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (options_.notifications.empty()) return notify::Targets{};
  const Result<std::string> text = system_files().read(options_.notifications, kMostBytes);
  if (!text.ok()) return text.error();
  return notify::parse_targets(*text);
}

Status Process::connect() {
  Result<notify::Targets> targets = read_targets();
  if (!targets.ok()) return targets.error();
  kube::ConnectOptions options;
  options.kubeconfig = options_.api.kubeconfig;
  options.qps = options_.api.qps;
  options.max_in_flight = ordinary_requests(options_);
  options.user_agent = std::string("holdfast-operator/") + kVersion;
  auto connection = kube::Connection::connect({loop_, random_, log_, request_observer()}, options);
  if (!connection.ok()) return connection.error();
  connection_ = std::move(*connection);
  metrics_->name_api_server(host_of(connection_->server()));
  log_.info("using the API server",
            {{"server", connection_->server()}, {"from", connection_->origin()}});
  if (const std::uint64_t each = connection_->descriptors_per_connection(); each > 1) {
    raise_descriptor_limit(descriptor_use(options_, each), log_);
  }

  kube::Client& client = connection_->client();
  events_ = std::make_unique<controller::EventRecorder>(loop_, client, options_.replica.id, log_);
  poster_ = std::make_unique<notify::HttpsPoster>(loop_, system_files());
  metrics_->name_targets(targets->names());
  Manager::Config config;
  config.targets = std::move(*targets);
  config.namespaces = options_.watch_namespaces;
  config.membership = {options_.replica.namespace_, options_.replica.id, options_.replica.shards,
                       options_.replica.timings};
  if (!options_.batch_jobs.empty()) {
    const std::string selector = options_.batch_jobs == "all" ? "" : options_.batch_jobs;
    config.batch_jobs = Manager::Config::BatchJobs{selector};
  }
  config.jobs.agent_image = options_.agent_image;
  config.jobs.pool.workers = options_.workers;
  // In a later turn, so that the caller finishes first.
  config.refuse = [this](const Error& error) {
    loop_.post([this, message = error.message] {
      if (stopping_) return;
      log_.error("cannot work", {{"error", message}});
      begin_stop("it cannot work here", kExitFailed);
    });
  };
  manager_ =
      std::make_unique<Manager>(Manager::Dependencies{loop_, client, random_, log_, *metrics_,
                                                      *events_, *poster_, system_files()},
                                std::move(config), metrics_->pool_metrics());
  metrics_->set_sources(metric_sources());
  return Unit{};
}

// ---- While it runs.

void Process::tick() {
  if (!manager_) return;  // stopped
  health_.beat(loop_.now(), watch_health(), answered_at_);
  if (!stopping_) look_at_caches();
  if (loop_.now() - last_trim_ >= kTrim) {
    last_trim_ = loop_.now();
    return_freed_memory();
  }
  loop_.call_after(kTick, [this] { tick(); });
}

std::vector<WatchHealth> Process::watch_health() {
  std::vector<WatchHealth> watches;
  const SteadyTime now = loop_.now();
  for (cache::Informer* const informer : manager_->needed()) {
    watches.push_back({informer->kind().name, informer->synced(), informer->live(),
                       informer->quiet_for(), now - informer->live_changed_at()});
  }
  // Only once: an outage must not make a replica unready.
  watches.push_back({"membership", manager_->membership().has_joined(), true, {}, {}});
  return watches;
}

void Process::look_at_caches() {
  const SteadyTime now = loop_.now();
  if (manager_->synced()) {
    if (!std::exchange(ready_told_, true)) {
      log_.info("ready", {{"took", human_duration(now - started_at_)}});
      spawn(report_fence(connection_->client(), log_));
    }
    return;
  }
  const bool too_late = now - started_at_ >= (caches_come() ? kLongSyncLimit : kSyncLimit);
  if (!too_late && now - last_report_ < kSyncReport) return;
  last_report_ = now;
  for (cache::Informer* const informer : manager_->needed()) {
    if (informer->live()) continue;
    const kube::Kind& kind = informer->kind();
    const Log::Fields fields = {
        {"cache", kind.name},
        {"reason", explain_unsynced({kind.group_path, kind.plural, informer->trouble()})}};
    if (too_late) {
      log_.error("a cache is not synced", fields);
    } else {
      log_.warn("a cache is not synced yet", fields);
    }
  }
  if (too_late) {
    begin_stop("the caches are not synced after " + human_duration(now - started_at_), kExitFailed);
  }
}

bool Process::caches_come() {
  const auto informers = manager_->needed();
  return std::any_of(informers.begin(), informers.end(), [](const cache::Informer* informer) {
    return !informer->synced() && informer->quiet_for() < kSyncLimit;
  });
}

// ---- The stop.

void Process::begin_stop(const std::string& why, int exit_code) {
  if (std::exchange(stopping_, true)) return;
  exit_code_ = exit_code;
  log_.info("stopping", {{"why", why}});
  signals_->stop_has_begun();
  health_.stopping();
  if (!manager_) {
    loop_.stop();
    return;
  }
  loop_.call_after(kLeaveLimit, [this] {
    if (manager_stopped_) return;
    log_.warn("all requests are cancelled", {{"after", human_duration(kLeaveLimit)}});
    connection_->shut_down();
  });
  manager_->stop([this] { manager_stopped(); });
}

void Process::manager_stopped() {
  if (std::exchange(manager_stopped_, true)) return;
  events_->finish([this] { events_finished(); });
}

void Process::events_finished() {
  connection_->shut_down();
  idle_deadline_ = loop_.now() + kIdleLimit;
  end_when_idle();
}

// Cancelled requests answer too. So all callers get their answers before the client is destroyed.
void Process::end_when_idle() {
  if (!connection_->client().idle() && loop_.now() < idle_deadline_) {
    loop_.call_after(kIdlePoll, [this] { end_when_idle(); });
    return;
  }
  metrics_->set_sources({});
  manager_.reset();
  poster_.reset();
  events_.reset();
  connection_.reset();
  loop_.post([this] { loop_.stop(); });  // after the callbacks that they posted
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
           if (!manager_) return answer({503, "not connected yet\n"});
           answer({200, ownership_json(manager_->ownership()), "application/json"});
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

Metrics::Sources Process::metric_sources() {
  Metrics::Sources sources;
  sources.jobs = [this] { return manager_->jobs().jobs_by_namespace(); };
  sources.oldest_overdue = [this] { return manager_->jobs().oldest_overdue(); };
  sources.watches = [this] {
    std::map<std::string, Metrics::WatchState> watches;
    for (cache::Informer* const informer : manager_->informers()) {
      watches[informer->kind().name] = {informer->quiet_for(), informer->live(),
                                        informer->store().size(), informer->closed()};
    }
    return watches;
  };
  sources.ownership = [this] { return manager_->ownership(); };
  sources.events_dropped = [this] { return events_->dropped(); };
  sources.queue_depth = [this] { return manager_->jobs().queue().depth(); };
  sources.unfinished_work = [this] { return manager_->jobs().queue().unfinished_work(); };
  sources.queues = [this] { return manager_->queues().counts(); };
  sources.pools = [this] { return manager_->pools().counts(); };
  sources.notifications = [this] { return manager_->notifier().waiting(); };
  sources.longest_running = [this] { return manager_->jobs().queue().longest_running(); };
  return sources;
}

}  // namespace holdfast::runtime
