#include "operator/runtime/work_metrics.h"

#include <utility>

namespace holdfast::runtime {
namespace {

using prometheus::Labels;

constexpr const char* kController = "durablejob";
constexpr const char* kResults[] = {"success", "error", "requeue", "requeue_after"};

const Buckets& reconcile_buckets() {
  static const auto* const buckets =
      new Buckets{0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
                  0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
                  6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
  return *buckets;
}
const Buckets& queue_buckets() {
  static const auto* const buckets =
      new Buckets{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
  return *buckets;
}
const Buckets& request_buckets() {
  static const auto* const buckets =
      new Buckets{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
  return *buckets;
}

const Labels& of_controller() {
  static const auto* const labels = new Labels{{"controller", kController}};
  return *labels;
}
const Labels& of_queue() {
  static const auto* const labels = new Labels{{"controller", kController}, {"name", kController}};
  return *labels;
}

}  // namespace

WorkMetrics::WorkMetrics(prometheus::Registry& registry, int workers)
    : reconciles_(
          counters(registry, "controller_runtime_reconcile_total", "Reconciles by result.")),
      reconcile_errors_(counters(registry, "controller_runtime_reconcile_errors_total",
                                 "Reconciles that ended with an error.")
                            .Add(of_controller())),
      panics_(counters(registry, "controller_runtime_reconcile_panics_total",
                       "Reconciles that an exception ended.")
                  .Add(of_controller())),
      reconcile_time_(histograms(registry, "controller_runtime_reconcile_time_seconds",
                                 "Length of a reconcile, with the requests that it waits for.")
                          .Add(of_controller(), reconcile_buckets())),
      active_workers_(gauges(registry, "controller_runtime_active_workers", "Reconciles in flight.")
                          .Add(of_controller())),
      depth_(gauges(registry, "workqueue_depth", "Jobs that wait for a worker.").Add(of_queue())),
      adds_(counters(registry, "workqueue_adds_total", "Adds to the queue.").Add(of_queue())),
      queue_duration_(
          histograms(registry, "workqueue_queue_duration_seconds", "Time in the queue until taken.")
              .Add(of_queue(), queue_buckets())),
      work_duration_(
          histograms(registry, "workqueue_work_duration_seconds", "Time from taken to done.")
              .Add(of_queue(), queue_buckets())),
      unfinished_work_(gauges(registry, "workqueue_unfinished_work_seconds",
                              "Sum of the ages of the reconciles in flight.")
                           .Add(of_queue())),
      longest_running_(gauges(registry, "workqueue_longest_running_processor_seconds",
                              "Age of the oldest reconcile in flight.")
                           .Add(of_queue())),
      retries_(
          counters(registry, "workqueue_retries_total", "Adds after a failure.").Add(of_queue())),
      requests_(counters(registry, "rest_client_requests_total",
                         "Requests to the API server; <error>: no answer came.")),
      request_time_(histograms(registry, "rest_client_request_duration_seconds",
                               "Length of a request to the API server.")) {
  for (const char* const result : kResults) {
    reconciles_.Add({{"controller", kController}, {"result", result}});
  }
  gauges(registry, "controller_runtime_max_concurrent_reconciles",
         "Most reconciles in flight (--workers).")
      .Add(of_controller())
      .Set(workers);
}

void WorkMetrics::name_api_server(const std::string& host) {
  host_ = host;
  for (const auto& [verb, code] :
       {std::pair("GET", "200"), std::pair("POST", "201"), std::pair("PUT", "200"),
        std::pair("PATCH", "200"), std::pair("DELETE", "200"), std::pair("WATCH", "200")}) {
    request_counter(verb, code);
    request_counter(verb, "<error>");
    request_histogram(verb);
  }
}

kube::RequestObserver WorkMetrics::request_observer() {
  return {[this](const std::string& verb, int code, Duration took) {
    request_counter(verb, code == 0 ? "<error>" : std::to_string(code)).Increment();
    request_histogram(verb).Observe(to_seconds(took));
  }};
}

controller::ReconcilePool::Metrics WorkMetrics::pool_metrics() {
  controller::ReconcilePool::Metrics metrics;
  metrics.queue.on_add = [this] { adds_.Increment(); };
  metrics.queue.on_retry = [this] { retries_.Increment(); };
  metrics.queue.on_take = [this](Duration queued) { queue_duration_.Observe(to_seconds(queued)); };
  metrics.queue.on_done = [this](Duration worked) { work_duration_.Observe(to_seconds(worked)); };
  metrics.on_active = [this](int active) { active_workers_.Set(active); };
  metrics.on_result = [this](const char* result, Duration took) {
    reconciles_.Add({{"controller", kController}, {"result", result}}).Increment();
    if (result == std::string("error")) reconcile_errors_.Increment();
    reconcile_time_.Observe(to_seconds(took));
  };
  metrics.on_exception = [this] { panics_.Increment(); };
  return metrics;
}

void WorkMetrics::set_depth(std::size_t depth) { depth_.Set(static_cast<double>(depth)); }

void WorkMetrics::set_unfinished(Duration sum, Duration longest) {
  unfinished_work_.Set(to_seconds(sum));
  longest_running_.Set(to_seconds(longest));
}

prometheus::Counter& WorkMetrics::request_counter(const std::string& verb,
                                                  const std::string& code) {
  return requests_.Add({{"code", code}, {"method", verb}, {"host", host_}});
}

prometheus::Histogram& WorkMetrics::request_histogram(const std::string& verb) {
  return request_time_.Add({{"verb", verb}, {"host", host_}}, request_buckets());
}

}  // namespace holdfast::runtime
