// The metrics of JobQueues (docs/operations.md). The series of a queue come with its first event,
// or the first scrape that shows it, and go when it, or its shard, has gone. Loop only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "operator/queues/queue_controller.h"
#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class QueueMetrics {
 public:
  explicit QueueMetrics(prometheus::Registry& registry);

  void admitted(const std::string& namespace_, const std::string& queue, Duration waited);
  // The queues as they are now.
  void refresh(const std::vector<controller::QueueCount>& counts);

 private:
  using Key = std::pair<std::string, std::string>;
  struct Series {
    prometheus::Gauge* running;
    prometheus::Gauge* waiting;
    prometheus::Gauge* oldest_wait;
    prometheus::Gauge* lag;
    prometheus::Counter* admissions;
    prometheus::Histogram* waits;
  };
  std::string shown(const std::string& namespace_, const std::string& queue) const;
  Series& series_of(const std::string& namespace_, const std::string& queue);
  void remove(const Series& series);

  Gauges& running_;
  Gauges& waiting_;
  Gauges& oldest_wait_;
  Gauges& lag_;
  Counters& admissions_;
  Histograms& waits_;
  std::map<Key, Series> series_;
};

}  // namespace holdfast::runtime
