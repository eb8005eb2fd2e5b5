// The metrics of pools of warm workers (docs/metrics.md). The series of a pool come with its
// first event, or the first scrape that shows it. They go when it, or its shard, has gone. Loop
// only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/time.h"
#include "operator/pools/pool_controller.h"
#include "operator/runtime/metric_families.h"
#include "operator/runtime/series_table.h"

namespace holdfast::runtime {

class PoolMetrics {
 public:
  explicit PoolMetrics(prometheus::Registry& registry);

  void slot_taken(const std::string& namespace_, const std::string& pool, Duration waited);
  void handed_back(const std::string& namespace_, const std::string& pool);
  void cut_off(const std::string& namespace_, const std::string& pool, const std::string& reason);
  void refresh(const std::vector<pools::PoolCount>& counts);

 private:
  struct Series {
    std::map<std::string, prometheus::Gauge*> workers;  // by state
    prometheus::Gauge* slots;
    prometheus::Gauge* busy;
    prometheus::Gauge* waiting;
    prometheus::Gauge* lag;
    prometheus::Histogram* waits;
    prometheus::Counter* handbacks;
    std::map<std::string, prometheus::Counter*> cut_offs;  // by reason
  };
  using Table = SeriesTable<Series>;
  Series create(const Table::Key& key);
  void remove(const Series& series);

  Gauges& workers_;
  Gauges& slots_;
  Gauges& busy_;
  Gauges& waiting_;
  Gauges& lag_;
  Histograms& waits_;
  Counters& handbacks_;
  Counters& cut_offs_;
  Table series_;  // by namespace and pool
};

}  // namespace holdfast::runtime
