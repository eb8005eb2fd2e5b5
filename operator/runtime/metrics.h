// All metrics of /metrics, under the usual Kubernetes names (list: docs/metrics.md). Every
// series with known labels starts at zero, so that rates and alerts work from the first scrape.
//
// Events are counted when they happen (Telemetry, and the hooks of queue, pool and client). Current
// values are read at the scrape, through the callbacks of `Sources`.
//
//   Metrics metrics(workers);
//   metrics.name_api_server("10.0.0.1:6443");
//   client({..., metrics.request_observer()}); pool(..., metrics.pool_metrics());
//   metrics.set_sources({...});
//   std::string text = metrics.text();
//
// Loop only. The hooks point to the Metrics, so the Metrics must outlive their callers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/controller/reconcile_pool.h"
#include "client/kube/client.h"
#include "core/time.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/pools/pool_controller.h"
#include "operator/queues/queue_controller.h"
#include "operator/rescue/rescue_controller.h"
#include "operator/runtime/replica_metrics.h"

namespace holdfast::runtime {

class Metrics : public jobs::Telemetry {
 public:
  using WatchState = runtime::WatchState;
  // Called at each scrape, on the loop. Any may be empty.
  struct Sources {
    // By namespace and phase ("" for none).
    std::function<std::map<std::string, std::map<std::string, std::size_t>>()> jobs;
    std::function<Duration()> oldest_overdue;
    std::function<std::map<std::string, WatchState>()> watches;  // by kind
    std::function<membership::OwnershipReport()> ownership;
    std::function<bool()> lacks_guard;
    std::function<std::uint64_t()> events_dropped;
    std::function<std::size_t()> queue_depth;
    std::function<Duration()> unfinished_work;
    std::function<Duration()> longest_running;
    std::function<std::vector<queues::QueueCount>()> queues;
    std::function<std::vector<pools::PoolCount>()> pools;
    std::function<rescue::RescueController::Counts()> rescues;
    std::function<std::map<std::string, std::size_t>()> notifications;  // waiting, by target
  };

  explicit Metrics(int workers);
  ~Metrics() override;

  // "host:port", the label `host` of rest_client_*. Call it before the first request.
  void name_api_server(const std::string& host);
  // The targets of notifications, which all have their series from the start.
  void name_targets(const std::vector<std::string>& names);
  void set_sources(Sources sources);

  kube::RequestObserver request_observer();
  controller::ReconcilePool::Metrics pool_metrics();

  void attempt_ended(const std::string& namespace_, const std::string& outcome) override;
  void job_started(const std::string& namespace_, Duration waited) override;
  void job_ended(const std::string& namespace_, const std::string& phase,
                 std::optional<Duration> took) override;
  void stage_ended(const std::string& phase, std::optional<Duration> took) override;
  void recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                 Duration took) override;
  void fenced_outcome(const std::string& pod_phase) override;
  void admitted(const std::string& namespace_, const std::string& queue, Duration waited) override;
  void slot_taken(const std::string& namespace_, const std::string& pool, Duration waited) override;
  void handed_back(const std::string& namespace_, const std::string& pool) override;
  void cut_off(const std::string& namespace_, const std::string& pool,
               const std::string& reason) override;
  void notified(const std::string& target, const std::string& result) override;
  void notification_dropped(const std::string& target) override;
  void rescued(const std::string& namespace_, Duration silent) override;
  void rescue_refused(const std::string& reason) override;
  void shard_moved(const std::string& how) override;

  // The Prometheus text format.
  std::string text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The Content-Type of text().
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace holdfast::runtime
