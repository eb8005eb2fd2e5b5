// What users see of the jobs of their namespace (docs/metrics.md). A namespace has series from
// its first job on, until another one needs its place and it has no jobs (series_table.h). Loop
// only.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/time.h"
#include "operator/runtime/metric_families.h"
#include "operator/runtime/series_table.h"
#include "reconciler/orphan_class.h"

namespace holdfast::runtime {

class NamespaceMetrics {
 public:
  explicit NamespaceMetrics(prometheus::Registry& registry);

  void attempt_ended(const std::string& namespace_, const std::string& outcome);
  void job_started(const std::string& namespace_, Duration waited);
  void job_ended(const std::string& namespace_, const std::string& phase,
                 std::optional<Duration> took);
  void recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class);

  // The jobs as they are now: by namespace, and by phase ("" for none).
  using Phases = std::map<std::string, std::size_t>;
  void refresh(const std::map<std::string, Phases>& namespaces);

 private:
  struct Series {
    std::map<std::string, prometheus::Gauge*> jobs;         // by phase
    std::map<std::string, prometheus::Counter*> ended;      // by phase
    std::map<std::string, prometheus::Counter*> attempts;   // by outcome
    std::map<std::string, prometheus::Counter*> recovered;  // by class
    prometheus::Histogram* duration = nullptr;
    prometheus::Histogram* wait = nullptr;
  };
  using Table = SeriesTable<Series>;
  Series& series_of(const std::string& namespace_) { return series_.of("", namespace_); }
  Series create(const std::string& namespace_);
  void remove(const Series& series);

  Gauges& jobs_;
  Counters& ended_;
  Counters& attempts_;
  Counters& recovered_;
  Histograms& duration_;
  Histograms& wait_;
  Table series_;  // one group
};

}  // namespace holdfast::runtime
