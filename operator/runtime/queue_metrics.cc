#include "operator/runtime/queue_metrics.h"

#include <algorithm>

namespace holdfast::runtime {
namespace {

// Queues of a namespace with series of their own. All others share one.
constexpr int kQueuesShown = 100;
constexpr const char* kOtherQueues = "(others)";

}  // namespace

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
                        "How long admitted jobs have waited in the queue.")) {}

void QueueMetrics::admitted(const std::string& namespace_, const std::string& queue,
                            Duration waited) {
  const Series& series = series_of(namespace_, shown(namespace_, queue));
  series.admissions->Increment();
  series.waits->Observe(to_seconds(waited));
}

QueueMetrics::Series& QueueMetrics::series_of(const std::string& namespace_,
                                              const std::string& queue) {
  const auto found = series_.find({namespace_, queue});
  if (found != series_.end()) return found->second;
  const prometheus::Labels labels = {{"namespace", namespace_}, {"queue", queue}};
  const Series series{&running_.Add(labels),     &waiting_.Add(labels),
                      &oldest_wait_.Add(labels), &lag_.Add(labels),
                      &admissions_.Add(labels),  &waits_.Add(labels, wait_buckets())};
  return series_.emplace(Key(namespace_, queue), series).first->second;
}

// A namespace may have any number of queues, and each costs some twenty lines at each scrape.
std::string QueueMetrics::shown(const std::string& namespace_, const std::string& queue) const {
  if (series_.count({namespace_, queue}) != 0) return queue;
  int shown = 0;
  for (auto one = series_.lower_bound({namespace_, ""});
       one != series_.end() && one->first.first == namespace_; ++one) {
    ++shown;
  }
  return shown < kQueuesShown ? queue : kOtherQueues;
}

void QueueMetrics::refresh(const std::vector<controller::QueueCount>& counts) {
  std::map<Key, controller::QueueCount> there;
  for (const controller::QueueCount& count : counts) {
    const std::string name = shown(count.namespace_, count.name);
    series_of(count.namespace_, name);
    controller::QueueCount& sum = there[{count.namespace_, name}];
    sum.running += count.running;
    sum.waiting += count.waiting;
    sum.oldest_wait = std::max(sum.oldest_wait, count.oldest_wait);
    sum.lag = std::max(sum.lag, count.lag);
  }
  for (const auto& [key, sum] : there) {
    const Series& series = series_.at(key);
    series.running->Set(static_cast<double>(sum.running));
    series.waiting->Set(static_cast<double>(sum.waiting));
    series.oldest_wait->Set(to_seconds(sum.oldest_wait));
    series.lag->Set(to_seconds(sum.lag));
  }
  for (auto one = series_.begin(); one != series_.end();) {
    if (there.count(one->first) != 0) {
      ++one;
      continue;
    }
    remove(one->second);
    one = series_.erase(one);
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
