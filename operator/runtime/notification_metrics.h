// The metrics of notifications (docs/metrics.md). Loop only.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class NotificationMetrics {
 public:
  explicit NotificationMetrics(prometheus::Registry& registry);

  // The targets of the configuration, which all have their series from the start.
  void name_targets(const std::vector<std::string>& names);

  void notified(const std::string& target, const std::string& result);
  void dropped(const std::string& target);
  // How many events wait for each target.
  void refresh(const std::map<std::string, std::size_t>& waiting);

 private:
  Counters& notifications_;
  Gauges& waiting_;
  Counters& dropped_;
  // By target. Jobs may name others, which share a series.
  std::map<std::string, prometheus::Counter*> dropped_for_;
};

}  // namespace holdfast::runtime
