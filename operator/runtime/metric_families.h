// Registers families of metrics, and the values of labels that several of them have.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace holdfast::runtime {

using Buckets = prometheus::Histogram::BucketBoundaries;
using Counters = prometheus::Family<prometheus::Counter>;
using Gauges = prometheus::Family<prometheus::Gauge>;
using Histograms = prometheus::Family<prometheus::Histogram>;

inline Counters& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline Gauges& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline Histograms& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// Counters only rise: adds the difference between the new total and the last one.
inline void raise_to(prometheus::Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

inline constexpr const char* kNoPhase = "New";
inline constexpr const char* kPhases[] = {kNoPhase,    "Pending",   "Running",
                                          "Backoff",   "Suspended", "Cancelling",
                                          "Succeeded", "Failed",    "Cancelled"};
inline constexpr const char* kOutcomes[] = {
    "Succeeded",        "Failed",    "Lost",      "Hung",     "StartTimeout",
    "DeadlineExceeded", "Suspended", "Cancelled", "Deferred", "HandedBack"};

// Of waits that may take days.
inline const Buckets& wait_buckets() {
  static const auto* const buckets =
      new Buckets{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};
  return *buckets;
}

}  // namespace holdfast::runtime
