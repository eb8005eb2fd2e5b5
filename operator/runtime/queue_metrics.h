// The metrics of JobQueues (docs/metrics.md). The series of a queue come with its first event,
// or the first scrape that shows it. They go when it, or its shard, has gone. Loop only.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "operator/queues/queue_controller.h"
#include "operator/runtime/metric_families.h"
#include "operator/runtime/series_table.h"

namespace holdfast::runtime {

class QueueMetrics {
 public:
  explicit QueueMetrics(prometheus::Registry& registry);

  void admitted(const std::string& namespace_, const std::string& queue, Duration waited);
  // The queues as they are now.
  void refresh(const std::vector<queues::QueueCount>& counts);

 private:
  struct Series {
    prometheus::Gauge* running;
    prometheus::Gauge* waiting;
    prometheus::Gauge* oldest_wait;
    prometheus::Gauge* lag;
    prometheus::Counter* admissions;
    prometheus::Histogram* waits;
  };
  using Table = SeriesTable<Series>;
  Series create(const Table::Key& key);
  void remove(const Series& series);

  Gauges& running_;
  Gauges& waiting_;
  Gauges& oldest_wait_;
  Gauges& lag_;
  Counters& admissions_;
  Histograms& waits_;
  Table series_;  // by namespace and queue
};

}  // namespace holdfast::runtime
