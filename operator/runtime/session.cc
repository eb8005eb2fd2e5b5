#include "operator/runtime/session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "operator/jobs/channels.h"
#include "operator/runtime/fence_check.h"
#include "operator/runtime/ownership_json.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

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

Result<notify::Targets> read_targets(const std::string& file) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (file.empty()) return notify::Targets{};
  const Result<std::string> text = system_files().read(file, kMostBytes);
  if (!text.ok()) return text.error();
  return notify::parse_targets(*text);
}

}  // namespace

DescriptorUse descriptor_use(const Options& options, std::uint64_t per_connection) {
  DescriptorUse use;
  use.namespaces = options.watch_namespaces.size();
  use.requests = ordinary_requests(options) + 2 * http::CpprestTransport::Config().reserved;
  use.batch_jobs = !options.batch_jobs.empty();
  if (options.rescue.mode != Options::Rescue::Mode::kOff) {
    use.rescue_watches = std::max<std::size_t>(1, options.rescue_namespaces().size());
  }
  use.per_connection = per_connection;
  use.targets = options.notifications.empty() ? 0 : notify::kTargetLimit;
  use.targets_through_proxy = has_https_proxy();
  return use;
}

Session::~Session() { deps_.metrics.set_sources({}); }

Result<std::unique_ptr<Work>> Session::connect(Dependencies dependencies, const Options& options) {
  Result<notify::Targets> targets = read_targets(options.notifications);
  if (!targets.ok()) return targets.error();
  auto connection = open(dependencies, options, ordinary_requests(options));
  if (!connection.ok()) return connection.error();
  std::unique_ptr<Session> session(new Session(std::move(dependencies), std::move(*connection)));
  session->make_parts(options, std::move(*targets));
  return std::unique_ptr<Work>(std::move(session));
}

void Session::make_parts(const Options& options, notify::Targets targets) {
  if (const std::uint64_t each = connection_->descriptors_per_connection(); each > 1) {
    raise_descriptor_limit(descriptor_use(options, each), deps_.log);
  }

  events_ =
      std::make_unique<events::EventRecorder>(deps_.loop, client(), options.replica.id, deps_.log);
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
    config.rescue = rescue::Config{options.rescue_namespaces(), options.rescue.owners,
                                   options.rescue.most_per_minute};
  }
  config.guard = Manager::Config::Guard{options.require_guard, kVersion};
  config.jobs.agent_image = options.agent_image;
  config.jobs.pool.workers = options.workers;
  config.refuse = deps_.refuse;
  manager_ = std::make_unique<Manager>(
      Manager::Dependencies{deps_.loop, client(), deps_.random, deps_.log, deps_.metrics, *events_,
                            *poster_, system_files()},
      std::move(config), deps_.metrics.pool_metrics());
  deps_.metrics.set_sources(metric_sources());
}

void Session::on_ready() { spawn(report_fence(client(), deps_.log)); }

std::vector<WatchHealth> Session::health(SteadyTime now) {
  std::vector<WatchHealth> watches = Work::health(now);
  // Only once: an outage must not make a replica unready.
  watches.push_back({"membership", manager_->membership().has_joined(), true, {}, {}});
  return watches;
}

std::string Session::ownership() { return ownership_json(manager_->ownership()); }

void Session::finish(std::function<void()> ended) {
  manager_->stop([this, ended = std::move(ended)] { events_->finish(ended); });
}

Metrics::Sources Session::metric_sources() {
  Metrics::Sources sources;
  sources.jobs = [this] { return manager_->jobs().jobs_by_namespace(); };
  sources.oldest_overdue = [this] { return manager_->jobs().oldest_overdue(); };
  sources.watches = [this] { return states_of(manager_->informers()); };
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
