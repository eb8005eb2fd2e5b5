// The metrics of reconciles and requests, under the names of controller-runtime and client-go, so
// that their dashboards fit. Loop only.
#pragma once

#include <string>

#include "client/controller/reconcile_pool.h"
#include "client/kube/client.h"
#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class WorkMetrics {
 public:
  WorkMetrics(prometheus::Registry& registry, int workers);

  // "host:port", the label `host`. Call it before the first request.
  void name_api_server(const std::string& host);
  kube::RequestObserver request_observer();
  controller::ReconcilePool::Metrics pool_metrics();

  void set_depth(std::size_t depth);
  void set_unfinished(Duration sum, Duration longest);

 private:
  prometheus::Counter& request_counter(const std::string& verb, const std::string& code);
  prometheus::Histogram& request_histogram(const std::string& verb);

  Counters& reconciles_;
  prometheus::Counter& reconcile_errors_;
  prometheus::Counter& panics_;
  prometheus::Histogram& reconcile_time_;
  prometheus::Gauge& active_workers_;
  prometheus::Gauge& depth_;
  prometheus::Counter& adds_;
  prometheus::Histogram& queue_duration_;
  prometheus::Histogram& work_duration_;
  prometheus::Gauge& unfinished_work_;
  prometheus::Gauge& longest_running_;
  prometheus::Counter& retries_;
  Counters& requests_;
  Histograms& request_time_;
  std::string host_;
};

}  // namespace holdfast::runtime
