#include "operator/runtime/queue_metrics.h"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::runtime {

QueueMetrics::QueueMetrics(prometheus::Registry& registry)
    : running_(gauges(registry, "holdfast_queue_running", "Permits of the queue that are out.")),
      waiting_(gauges(registry, "holdfast_queue_waiting", "Jobs that wait in the queue.")),
      oldest_wait_(gauges(registry, "holdfast_queue_oldest_wait_seconds",
                          "How long its oldest job has waited.")),
      lag_(gauges(
          registry, "holdfast_queue_admission_lag_seconds",
          "For how long a waiting job could have been admitted and was not; should be about 0.")),
      admissions_(counters(registry, "holdfast_queue_admissions_total",
                           "Permits that the queue has given.")),
      waits_(histograms(registry, "holdfast_queue_wait_seconds",
                        "How long admitted jobs have waited in the queue.")),
      series_([this](const Table::Key& key) { return create(key); },
              [this](const Series& series) { remove(series); }) {}

void QueueMetrics::admitted(const std::string& namespace_, const std::string& queue,
                            Duration waited) {
  const Series& series = series_.of(namespace_, queue);
  series.admissions->Increment();
  series.waits->Observe(to_seconds(waited));
}

QueueMetrics::Series QueueMetrics::create(const Table::Key& key) {
  const prometheus::Labels labels = {{"namespace", key.first}, {"queue", key.second}};
  return {&running_.Add(labels), &waiting_.Add(labels),    &oldest_wait_.Add(labels),
          &lag_.Add(labels),     &admissions_.Add(labels), &waits_.Add(labels, wait_buckets())};
}

void QueueMetrics::refresh(const std::vector<queues::QueueCount>& counts) {
  std::set<Table::Key> there;
  for (const queues::QueueCount& count : counts) there.emplace(count.namespace_, count.name);
  series_.mark([&](const Table::Key& key) { return there.count(key) != 0; });
  std::map<Table::Key, queues::QueueCount> sums;
  for (const queues::QueueCount& count : counts) {
    queues::QueueCount& sum = sums[series_.shown(count.namespace_, count.name)];
    sum.running += count.running;
    sum.waiting += count.waiting;
    sum.oldest_wait = std::max(sum.oldest_wait, count.oldest_wait);
    sum.lag = std::max(sum.lag, count.lag);
  }
  series_.remove_unused();
  for (const auto& [key, sum] : sums) {
    const Series& series = series_.at(key);
    series.running->Set(static_cast<double>(sum.running));
    series.waiting->Set(static_cast<double>(sum.waiting));
    series.oldest_wait->Set(to_seconds(sum.oldest_wait));
    series.lag->Set(to_seconds(sum.lag));
  }
}

void QueueMetrics::remove(const Series& series) {
  running_.Remove(series.running);
  waiting_.Remove(series.waiting);
  oldest_wait_.Remove(series.oldest_wait);
  lag_.Remove(series.lag);
  admissions_.Remove(series.admissions);
  waits_.Remove(series.waits);
}

}  // namespace holdfast::runtime
