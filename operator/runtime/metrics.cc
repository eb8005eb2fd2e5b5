#include "operator/runtime/metrics.h"

#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>

#include "operator/runtime/job_metrics.h"
#include "operator/runtime/notification_metrics.h"
#include "operator/runtime/pool_metrics.h"
#include "operator/runtime/process_metrics.h"
#include "operator/runtime/queue_metrics.h"
#include "operator/runtime/rescue_metrics.h"
#include "operator/runtime/work_metrics.h"

namespace holdfast::runtime {

struct Metrics::State {
  explicit State(int workers) : work(registry, workers) {}

  void refresh();

  prometheus::Registry registry;
  Sources sources;
  WorkMetrics work;
  QueueMetrics queues{registry};
  PoolMetrics pools{registry};
  JobMetrics jobs{registry};
  ReplicaMetrics replica{registry};
  NotificationMetrics notifications{registry};
  RescueMetrics rescues{registry};
  ProcessMetrics process{registry};
};

void Metrics::State::refresh() {
  if (sources.jobs) jobs.refresh(sources.jobs());
  if (sources.oldest_overdue) jobs.set_overdue(sources.oldest_overdue());
  if (sources.watches) replica.refresh_watches(sources.watches());
  if (sources.queues) queues.refresh(sources.queues());
  if (sources.pools) pools.refresh(sources.pools());
  if (sources.notifications) notifications.refresh(sources.notifications());
  if (sources.rescues) rescues.refresh(sources.rescues());
  if (sources.ownership) replica.refresh_ownership(sources.ownership());
  if (sources.lacks_guard) replica.refresh_guard(sources.lacks_guard());
  if (sources.events_dropped) replica.refresh_events(sources.events_dropped());
  if (sources.queue_depth) work.set_depth(sources.queue_depth());
  if (sources.unfinished_work && sources.longest_running) {
    work.set_unfinished(sources.unfinished_work(), sources.longest_running());
  }
  process.refresh();
}

Metrics::Metrics(int workers) : state_(std::make_unique<State>(workers)) {}
Metrics::~Metrics() = default;

void Metrics::name_api_server(const std::string& host) { state_->work.name_api_server(host); }

void Metrics::name_targets(const std::vector<std::string>& names) {
  state_->notifications.name_targets(names);
}

void Metrics::notification_dropped(const std::string& target) {
  state_->notifications.dropped(target);
}

void Metrics::notified(const std::string& target, const std::string& result) {
  state_->notifications.notified(target, result);
}

void Metrics::set_sources(Sources sources) { state_->sources = std::move(sources); }

kube::RequestObserver Metrics::request_observer() { return state_->work.request_observer(); }

controller::ReconcilePool::Metrics Metrics::pool_metrics() { return state_->work.pool_metrics(); }

void Metrics::attempt_ended(const std::string& namespace_, const std::string& outcome) {
  state_->jobs.attempt_ended(namespace_, outcome);
}

void Metrics::job_started(const std::string& namespace_, Duration waited) {
  state_->jobs.namespaces().job_started(namespace_, waited);
}

void Metrics::job_ended(const std::string& namespace_, const std::string& phase,
                        std::optional<Duration> took) {
  state_->jobs.namespaces().job_ended(namespace_, phase, took);
}

void Metrics::stage_ended(const std::string& phase, std::optional<Duration> took) {
  state_->jobs.stage_ended(phase, took);
}

void Metrics::recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                        Duration took) {
  state_->jobs.recovered(namespace_, orphan_class, took);
}

void Metrics::fenced_outcome(const std::string& pod_phase) {
  state_->jobs.fenced_outcome(pod_phase);
}

void Metrics::admitted(const std::string& namespace_, const std::string& queue, Duration waited) {
  state_->queues.admitted(namespace_, queue, waited);
}

void Metrics::slot_taken(const std::string& namespace_, const std::string& pool, Duration waited) {
  state_->pools.slot_taken(namespace_, pool, waited);
}

void Metrics::handed_back(const std::string& namespace_, const std::string& pool) {
  state_->pools.handed_back(namespace_, pool);
}

void Metrics::cut_off(const std::string& namespace_, const std::string& pool,
                      const std::string& reason) {
  state_->pools.cut_off(namespace_, pool, reason);
}

void Metrics::rescued(const std::string&, Duration silent) { state_->rescues.rescued(silent); }

void Metrics::rescue_refused(const std::string& reason) { state_->rescues.refused(reason); }

void Metrics::shard_moved(const std::string& how) { state_->replica.shard_moved(how); }

std::string Metrics::text() {
  state_->refresh();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, state_->registry.Collect());
  return out.str();
}

}  // namespace holdfast::runtime
