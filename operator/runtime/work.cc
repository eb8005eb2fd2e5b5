#include "operator/runtime/work.h"

#include <chrono>
#include <utility>

#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

// Kubernetes gives a pod 30 s. Requests that still hang after half of it are cancelled, before the
// kubelet kills the process.
constexpr std::chrono::seconds kLeaveLimit{15};
constexpr std::chrono::seconds kIdleLimit{3};
constexpr std::chrono::milliseconds kIdlePoll{5};

std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

}  // namespace

Work::~Work() { deps_.loop.cancel(leave_timer_); }

Result<std::unique_ptr<kube::Connection>> Work::open(const Dependencies& dependencies,
                                                     const Options& options,
                                                     std::size_t max_in_flight) {
  kube::ConnectOptions how;
  how.kubeconfig = options.api.kubeconfig;
  how.qps = options.api.qps;
  how.max_in_flight = max_in_flight;
  how.user_agent = std::string("holdfast-operator/") + kVersion;
  auto connection = kube::Connection::connect(
      {dependencies.loop, dependencies.random, dependencies.log, dependencies.observer}, how);
  if (!connection.ok()) return connection.error();
  dependencies.metrics.name_api_server(host_of((*connection)->server()));
  dependencies.log.info("using the API server",
                        {{"server", (*connection)->server()}, {"from", (*connection)->origin()}});
  return connection;
}

std::vector<WatchHealth> Work::health(SteadyTime now) {
  std::vector<WatchHealth> watches;
  for (cache::Informer* const informer : needed()) {
    watches.push_back({informer->kind().name, informer->synced(), informer->live(),
                       informer->quiet_for(), now - informer->live_changed_at()});
  }
  return watches;
}

std::map<std::string, Metrics::WatchState> Work::states_of(
    const std::vector<cache::Informer*>& informers) {
  std::map<std::string, Metrics::WatchState> watches;
  for (cache::Informer* const informer : informers) {
    watches[informer->kind().name] = {informer->quiet_for(), informer->live(),
                                      informer->store().size(), informer->closed(),
                                      informer->is_unselected()};
  }
  return watches;
}

void Work::stop(std::function<void()> stopped) {
  stopped_ = std::move(stopped);
  leave_timer_ = deps_.loop.call_after(kLeaveLimit, [this] {
    if (finished_) return;
    deps_.log.warn("all requests are cancelled", {{"after", human_duration(kLeaveLimit)}});
    connection_->shut_down();
  });
  finish([this] {
    if (std::exchange(finished_, true)) return;
    connection_->shut_down();
    idle_deadline_ = deps_.loop.now() + kIdleLimit;
    end_when_idle();
  });
}

// Cancelled requests answer too. So all callers get their answers before the client is destroyed.
void Work::end_when_idle() {
  if (!client().idle() && deps_.loop.now() < idle_deadline_) {
    deps_.loop.call_after(kIdlePoll, [this] { end_when_idle(); });
    return;
  }
  const std::function<void()> stopped = std::move(stopped_);
  stopped();
}

}  // namespace holdfast::runtime
