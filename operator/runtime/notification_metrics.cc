#include "operator/runtime/notification_metrics.h"

#include "operator/jobs/telemetry.h"
#include "operator/runtime/series_table.h"

namespace holdfast::runtime {

NotificationMetrics::NotificationMetrics(prometheus::Registry& registry)
    : notifications_(counters(registry, "holdfast_notifications_total",
                              "Tries to deliver an event to a target, by result.")),
      waiting_(gauges(registry, "holdfast_notifications_waiting",
                      "Events that a target has not taken yet.")),
      dropped_(counters(registry, "holdfast_notifications_dropped_total",
                        "Events that a target will not get: refused, given up, or without room.")) {
}

void NotificationMetrics::name_targets(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* const result : jobs::kNotificationResults) {
      notifications_.Add({{"target", name}, {"result", result}});
    }
    waiting_.Add({{"target", name}});
    dropped_for_[name] = &dropped_.Add({{"target", name}});
  }
}

void NotificationMetrics::notified(const std::string& target, const std::string& result) {
  notifications_.Add({{"target", target}, {"result", result}}).Increment();
}

void NotificationMetrics::dropped(const std::string& target) {
  const auto known = dropped_for_.find(target);
  prometheus::Counter& counter =
      known != dropped_for_.end() ? *known->second : dropped_.Add({{"target", kOthers}});
  counter.Increment();
}

void NotificationMetrics::refresh(const std::map<std::string, std::size_t>& waiting) {
  for (const auto& [target, count] : waiting) {
    waiting_.Add({{"target", target}}).Set(static_cast<double>(count));
  }
}

}  // namespace holdfast::runtime
