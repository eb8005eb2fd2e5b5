#include "operator/runtime/session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "operator/jobs/channels.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

// Kubernetes gives a pod 30 s. Requests that still hang after half of it are cancelled, before the
// kubelet kills the process.
constexpr std::chrono::seconds kLeaveLimit{15};
constexpr std::chrono::seconds kIdleLimit{3};
constexpr std::chrono::milliseconds kIdlePoll{5};

// There may be twice as many reconciles, and as many creations, as workers. Reconciles of jobs with
// many runs have channels beside. The rest is for lists, Events and shards. So a request never
// waits for another namespace's.
std::size_t ordinary_requests(const Options& options) {
  return 4 * static_cast<std::size_t>(options.workers) + 2 * std::size_t{jobs::kChannels} +
         2 * std::size_t{queues::kQueueWorkers} + 32;
}

// Whether a proxy is used for a target depends on NO_PROXY, too: this counts the worst case.
bool has_https_proxy() {
  return !http::process_environment("HTTPS_PROXY").empty() ||
         !http::process_environment("https_proxy").empty();
}

std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

Result<notify::Targets> read_targets(const std::string& file) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (file.empty()) return notify::Targets{};
  const Result<std::string> text = system_files().read(file, kMostBytes);
  if (!text.ok()) return text.error();
  return notify::parse_targets(*text);
}

const std::vector<std::string>& rescue_namespaces(const Options& options) {
  return options.rescue.namespaces.empty() ? options.watch_namespaces : options.rescue.namespaces;
}

}  // namespace

DescriptorUse descriptor_use(const Options& options, std::uint64_t per_connection) {
  DescriptorUse use;
  use.namespaces = options.watch_namespaces.size();
  use.requests = ordinary_requests(options) + 2 * http::CpprestTransport::Config().reserved;
  use.batch_jobs = !options.batch_jobs.empty();
  if (options.rescue.mode != Options::Rescue::Mode::kOff) {
    use.rescue_watches = std::max<std::size_t>(1, rescue_namespaces(options).size());
  }
  use.per_connection = per_connection;
  use.targets = options.notifications.empty() ? 0 : notify::kTargetLimit;
  use.targets_through_proxy = has_https_proxy();
  return use;
}

Session::~Session() {
  deps_.metrics.set_sources({});
  deps_.loop.cancel(leave_timer_);
}

Result<std::unique_ptr<Session>> Session::connect(Dependencies dependencies,
                                                  const Options& options) {
  Result<notify::Targets> targets = read_targets(options.notifications);
  if (!targets.ok()) return targets.error();
  kube::ConnectOptions how;
  how.kubeconfig = options.api.kubeconfig;
  how.qps = options.api.qps;
  how.max_in_flight = ordinary_requests(options);
  how.user_agent = std::string("holdfast-operator/") + kVersion;
  auto connection = kube::Connection::connect(
      {dependencies.loop, dependencies.random, dependencies.log, dependencies.observer}, how);
  if (!connection.ok()) return connection.error();
  std::unique_ptr<Session> session(new Session(std::move(dependencies)));
  session->connection_ = std::move(*connection);
  session->make_parts(options, std::move(*targets));
  return session;
}

void Session::make_parts(const Options& options, notify::Targets targets) {
  deps_.metrics.name_api_server(host_of(connection_->server()));
  deps_.log.info("using the API server",
                 {{"server", connection_->server()}, {"from", connection_->origin()}});
  if (const std::uint64_t each = connection_->descriptors_per_connection(); each > 1) {
    raise_descriptor_limit(descriptor_use(options, each), deps_.log);
  }

  kube::Client& client = connection_->client();
  events_ =
      std::make_unique<events::EventRecorder>(deps_.loop, client, options.replica.id, deps_.log);
  poster_ = std::make_unique<notify::HttpsPoster>(deps_.loop, system_files());
  deps_.metrics.name_targets(targets.names());
  Manager::Config config;
  config.targets = std::move(targets);
  config.namespaces = options.watch_namespaces;
  config.membership = {options.replica.namespace_, options.replica.id, options.replica.shards,
                       options.replica.timings};
  if (!options.batch_jobs.empty()) {
    const std::string selector = options.batch_jobs == "all" ? "" : options.batch_jobs;
    config.batch_jobs = Manager::Config::BatchJobs{selector};
  }
  if (options.rescue.mode == Options::Rescue::Mode::kOn) {
    config.rescue = rescue::Config{rescue_namespaces(options), options.rescue.owners,
                                   options.rescue.most_per_minute};
  }
  config.guard = Manager::Config::Guard{options.require_guard, kVersion};
  config.jobs.agent_image = options.agent_image;
  config.jobs.pool.workers = options.workers;
  config.refuse = deps_.refuse;
  manager_ = std::make_unique<Manager>(
      Manager::Dependencies{deps_.loop, client, deps_.random, deps_.log, deps_.metrics, *events_,
                            *poster_, system_files()},
      std::move(config), deps_.metrics.pool_metrics());
  deps_.metrics.set_sources(metric_sources());
}

void Session::stop(std::function<void()> stopped) {
  stopped_ = std::move(stopped);
  leave_timer_ = deps_.loop.call_after(kLeaveLimit, [this] {
    if (manager_stopped_) return;
    deps_.log.warn("all requests are cancelled", {{"after", human_duration(kLeaveLimit)}});
    connection_->shut_down();
  });
  manager_->stop([this] { manager_stopped(); });
}

void Session::manager_stopped() {
  if (std::exchange(manager_stopped_, true)) return;
  events_->finish([this] {
    connection_->shut_down();
    idle_deadline_ = deps_.loop.now() + kIdleLimit;
    end_when_idle();
  });
}

// Cancelled requests answer too. So all callers get their answers before the client is destroyed.
void Session::end_when_idle() {
  if (!connection_->client().idle() && deps_.loop.now() < idle_deadline_) {
    deps_.loop.call_after(kIdlePoll, [this] { end_when_idle(); });
    return;
  }
  const std::function<void()> stopped = std::move(stopped_);
  stopped();
}

Metrics::Sources Session::metric_sources() {
  Metrics::Sources sources;
  sources.jobs = [this] { return manager_->jobs().jobs_by_namespace(); };
  sources.oldest_overdue = [this] { return manager_->jobs().oldest_overdue(); };
  sources.watches = [this] {
    std::map<std::string, Metrics::WatchState> watches;
    for (cache::Informer* const informer : manager_->informers()) {
      watches[informer->kind().name] = {informer->quiet_for(), informer->live(),
                                        informer->store().size(), informer->closed(),
                                        informer->is_unselected()};
    }
    return watches;
  };
  sources.ownership = [this] { return manager_->ownership(); };
  sources.lacks_guard = [this] { return !manager_->guard_fault().empty(); };
  sources.events_dropped = [this] { return events_->dropped(); };
  sources.queue_depth = [this] { return manager_->jobs().queue().depth(); };
  sources.unfinished_work = [this] { return manager_->jobs().queue().unfinished_work(); };
  sources.queues = [this] { return manager_->queues().counts(); };
  sources.pools = [this] { return manager_->pools().counts(); };
  sources.rescues = [this] { return manager_->rescues(); };
  sources.notifications = [this] { return manager_->notifier().waiting(); };
  sources.longest_running = [this] { return manager_->jobs().queue().longest_running(); };
  return sources;
}

}  // namespace holdfast::runtime
