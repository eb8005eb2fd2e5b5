// The metrics of pools of warm workers (docs/operations.md). The series of a pool come with its
// first event, or the first scrape that shows it, and go when it, or its shard, has gone. Loop
// only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "operator/pools/pool_controller.h"
#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

class PoolMetrics {
 public:
  explicit PoolMetrics(prometheus::Registry& registry);

  void slot_taken(const std::string& namespace_, const std::string& pool, Duration waited);
  void handed_back(const std::string& namespace_, const std::string& pool);
  void cut_off(const std::string& namespace_, const std::string& pool, const std::string& reason);
  void refresh(const std::vector<controller::PoolCount>& counts);

 private:
  using Key = std::pair<std::string, std::string>;
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
  std::string shown(const std::string& namespace_, const std::string& pool) const;
  Series& series_of(const std::string& namespace_, const std::string& pool);
  void remove(const Series& series);

  Gauges& workers_;
  Gauges& slots_;
  Gauges& busy_;
  Gauges& waiting_;
  Gauges& lag_;
  Histograms& waits_;
  Counters& handbacks_;
  Counters& cut_offs_;
  std::map<Key, Series> series_;
};

}  // namespace holdfast::runtime
