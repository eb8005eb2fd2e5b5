// The metrics of this replica: what it watches, its place among the others, and its Events
// (docs/metrics.md). Loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/time.h"
#include "operator/membership/membership.h"
#include "operator/runtime/metric_families.h"

namespace holdfast::runtime {

// The state of one kind's watches.
struct WatchState {
  Duration quiet{};
  bool live = false;
  std::size_t objects = 0;
  int closed = 0;           // namespaces
  bool unselected = false;  // everything is watched, because the API server cannot select
};

class ReplicaMetrics {
 public:
  explicit ReplicaMetrics(prometheus::Registry& registry);

  void shard_moved(const std::string& how);
  void refresh_watches(const std::map<std::string, WatchState>& by_kind);
  void refresh_ownership(const membership::OwnershipReport& report);
  void refresh_events(std::uint64_t dropped);
  void refresh_guard(bool is_missing);

 private:
  Gauges& watch_quiet_;
  Gauges& watch_live_;
  Gauges& watch_closed_;
  Gauges& watch_unselected_;
  Gauges& cached_;
  prometheus::Gauge& acting_;
  prometheus::Gauge& renewal_age_;
  prometheus::Gauge& members_;
  prometheus::Gauge& shards_held_;
  prometheus::Gauge& shards_orphaned_;
  prometheus::Gauge& guard_missing_;
  Counters& shard_moves_;
  prometheus::Counter& events_dropped_;
};

}  // namespace holdfast::runtime
