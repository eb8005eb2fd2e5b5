#include "operator/runtime/rescue_metrics.h"

namespace holdfast::runtime {
namespace {

// Around the bounds W + 1 s of the windows 15, 30, 60 (default), 120, 300 and 600 s.
const Buckets& silence_buckets() {
  static const auto* const buckets =
      new Buckets{16, 20, 31, 40, 61, 75, 90, 121, 180, 301, 601, 1800, 3600};
  return *buckets;
}

}  // namespace

RescueMetrics::RescueMetrics(prometheus::Registry& registry)
    : refusals_(counters(registry, "holdfast_rescue_refusals_total",
                         "Pods on silent nodes that were not freed, by reason.")),
      silences_(histograms(registry, "holdfast_rescue_seconds",
                           "From the last renewal of a node's Lease to the end of a pod there.")
                    .Add({}, silence_buckets())),
      held_(gauges(registry, "holdfast_rescue_held",
                   "Pods that wait on a silent node because most nodes seem silent.")
                .Add({})),
      failing_(gauges(registry, "holdfast_rescue_failing",
                      "Pods on silent nodes whose last request to free them failed.")
                   .Add({})) {
  for (std::size_t each = 0; each < reconciler::kRescueRefusals; ++each) {
    refusals_.Add({{"reason", to_string(static_cast<reconciler::RescueRefusal>(each))}});
  }
}

void RescueMetrics::rescued(Duration silent) { silences_.Observe(to_seconds(silent)); }

void RescueMetrics::refused(const std::string& reason) {
  refusals_.Add({{"reason", reason}}).Increment();
}

void RescueMetrics::refresh(const rescue::RescueController::Counts& counts) {
  held_.Set(static_cast<double>(counts.held));
  failing_.Set(static_cast<double>(counts.failing));
}

}  // namespace holdfast::runtime
