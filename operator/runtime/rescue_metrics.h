// The metrics of other controllers' pods on silent nodes (docs/metrics.md). Loop only.
#pragma once

#include <string>

#include "core/time.h"
#include "operator/rescue/rescue_controller.h"
#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class RescueMetrics {
 public:
  explicit RescueMetrics(prometheus::Registry& registry);

  void rescued(Duration silent);
  void refused(const std::string& reason);
  void refresh(const rescue::RescueController::Counts& counts);

 private:
  Counters& refusals_;
  prometheus::Histogram& silences_;
  prometheus::Gauge& held_;
  prometheus::Gauge& failing_;
};

}  // namespace holdfast::runtime
