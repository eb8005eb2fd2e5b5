// What users see of the jobs of their namespace (docs/operations.md). A namespace has series from
// its first job on. At most kNamespacesShown have series of their own. All others share those of
// "(others)". If a new namespace comes when all places are taken, it gets the place of one without
// jobs. Loop only.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/time.h"
#include "operator/runtime/metric_families.h"
#include "reconciler/reason.h"

namespace holdfast::runtime {

// Each costs up to 70 lines at each scrape.
inline constexpr std::size_t kNamespacesShown = 100;

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
    bool has_jobs = true;  // at the last scrape, or since
  };
  Series& series_of(const std::string& namespace_);
  Series create(const std::string& namespace_);
  bool make_room();
  void remove(const Series& series);

  Gauges& jobs_;
  Counters& ended_;
  Counters& attempts_;
  Counters& recovered_;
  Histograms& duration_;
  Histograms& wait_;
  std::map<std::string, Series> series_;  // by the label
};

}  // namespace holdfast::runtime
