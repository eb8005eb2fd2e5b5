// The metrics process_*: memory, CPU time, descriptors and threads. Loop only.
#pragma once

#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class ProcessMetrics {
 public:
  explicit ProcessMetrics(prometheus::Registry& registry);

  // Reads them from the kernel.
  void refresh();

 private:
  prometheus::Gauge& resident_;
  prometheus::Gauge& virtual_memory_;
  prometheus::Counter& cpu_;
  prometheus::Gauge& open_fds_;
  prometheus::Gauge& max_fds_;
  prometheus::Gauge& threads_;
  prometheus::Gauge& start_time_;
};

}  // namespace holdfast::runtime
