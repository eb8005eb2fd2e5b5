#include "operator/runtime/pool_metrics.h"

#include <algorithm>
#include <set>

namespace holdfast::runtime {
namespace {

constexpr const char* kReasons[] = {"Silent", "PodEnded", "OOMKilled", "PodGone", "Revoked"};

// A start on a warm worker takes milliseconds. A long wait is one for a slot.
const Buckets& start_wait_buckets() {
  static const auto* const buckets =
      new Buckets{0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 5, 30, 300, 3600};
  return *buckets;
}

}  // namespace

PoolMetrics::PoolMetrics(prometheus::Registry& registry)
    : workers_(gauges(registry, "holdfast_pool_workers", "Workers of the pool by state.")),
      slots_(gauges(registry, "holdfast_pool_slots", "Slots of workers that take attempts.")),
      busy_(gauges(registry, "holdfast_pool_slots_busy", "Those of them that have an attempt.")),
      waiting_(gauges(registry, "holdfast_pool_waiting", "Runs that wait for a free slot.")),
      lag_(gauges(registry, "holdfast_pool_free_slot_wait_seconds",
                  "For how long runs have waited while a slot was free; should be about 0.")),
      waits_(histograms(registry, "holdfast_pool_start_wait_seconds",
                        "From a run's first wait for a slot until its worker was told of it.")),
      handbacks_(counters(registry, "holdfast_pool_handbacks_total",
                          "Attempts that workers gave back before they began.")),
      cut_offs_(counters(registry, "holdfast_pool_cut_offs_total",
                         "Workers that were cut off, by reason.")),
      series_([this](const Table::Key& key) { return create(key); },
              [this](const Series& series) { remove(series); }) {}

PoolMetrics::Series PoolMetrics::create(const Table::Key& key) {
  const prometheus::Labels labels = {{"namespace", key.first}, {"pool", key.second}};
  const auto with = [&](const char* label, const char* value) {
    prometheus::Labels more = labels;
    more[label] = value;
    return more;
  };
  Series series{{},
                &slots_.Add(labels),
                &busy_.Add(labels),
                &waiting_.Add(labels),
                &lag_.Add(labels),
                &waits_.Add(labels, start_wait_buckets()),
                &handbacks_.Add(labels),
                {}};
  for (const char* const state : pools::kWorkerStates) {
    series.workers[state] = &workers_.Add(with("state", state));
  }
  for (const char* const reason : kReasons) {
    series.cut_offs[reason] = &cut_offs_.Add(with("reason", reason));
  }
  return series;
}

void PoolMetrics::slot_taken(const std::string& namespace_, const std::string& pool,
                             Duration waited) {
  series_.of(namespace_, pool).waits->Observe(to_seconds(waited));
}

void PoolMetrics::handed_back(const std::string& namespace_, const std::string& pool) {
  series_.of(namespace_, pool).handbacks->Increment();
}

void PoolMetrics::cut_off(const std::string& namespace_, const std::string& pool,
                          const std::string& reason) {
  const Series& series = series_.of(namespace_, pool);
  const auto counter = series.cut_offs.find(reason);
  if (counter != series.cut_offs.end()) counter->second->Increment();
}

void PoolMetrics::refresh(const std::vector<pools::PoolCount>& counts) {
  std::set<Table::Key> there;
  for (const pools::PoolCount& count : counts) there.emplace(count.namespace_, count.name);
  series_.mark([&](const Table::Key& key) { return there.count(key) != 0; });
  std::map<Table::Key, pools::PoolCount> sums;
  for (const pools::PoolCount& count : counts) {
    pools::PoolCount& sum = sums[series_.shown(count.namespace_, count.name)];
    for (const auto& [state, workers] : count.workers) sum.workers[state] += workers;
    sum.slots += count.slots;
    sum.busy_slots += count.busy_slots;
    sum.waiting += count.waiting;
    sum.lag = std::max(sum.lag, count.lag);
  }
  series_.remove_unused();
  for (const auto& [key, sum] : sums) {
    const Series& series = series_.at(key);
    for (const auto& [state, gauge] : series.workers) {
      const auto workers = sum.workers.find(state);
      gauge->Set(workers == sum.workers.end() ? 0 : static_cast<double>(workers->second));
    }
    series.slots->Set(static_cast<double>(sum.slots));
    series.busy->Set(static_cast<double>(sum.busy_slots));
    series.waiting->Set(static_cast<double>(sum.waiting));
    series.lag->Set(to_seconds(sum.lag));
  }
}

void PoolMetrics::remove(const Series& series) {
  for (const auto& [state, gauge] : series.workers) workers_.Remove(gauge);
  slots_.Remove(series.slots);
  busy_.Remove(series.busy);
  waiting_.Remove(series.waiting);
  lag_.Remove(series.lag);
  waits_.Remove(series.waits);
  handbacks_.Remove(series.handbacks);
  for (const auto& [reason, counter] : series.cut_offs) cut_offs_.Remove(counter);
}

}  // namespace holdfast::runtime
