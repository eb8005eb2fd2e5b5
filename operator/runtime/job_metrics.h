// The metrics of jobs: in all, and of each namespace (docs/metrics.md). Every series has its
// zero from the start. Loop only.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/time.h"
#include "operator/runtime/metric_families.h"
#include "operator/runtime/namespace_metrics.h"
#include "reconciler/api.h"

namespace holdfast::runtime {

class JobMetrics {
 public:
  explicit JobMetrics(prometheus::Registry& registry);

  void attempt_ended(const std::string& namespace_, const std::string& outcome);
  void stage_ended(const std::string& phase, std::optional<Duration> took);
  void recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                 Duration took);
  void fenced_outcome(const std::string& pod_phase);
  NamespaceMetrics& namespaces() { return namespaces_; }

  // The jobs as they are now: by namespace, and by phase ("" for none).
  void refresh(const std::map<std::string, NamespaceMetrics::Phases>& by_namespace);
  void set_overdue(Duration oldest);

 private:
  prometheus::Histogram& recovery_from(reconciler::OrphanClass orphan_class);

  Gauges& jobs_;
  Counters& attempts_;
  Counters& stages_;
  prometheus::Histogram& stage_time_;
  Histograms& recovery_;
  Counters& fenced_;
  prometheus::Gauge& overdue_;
  NamespaceMetrics namespaces_;
};

}  // namespace holdfast::runtime
