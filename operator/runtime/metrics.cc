#include "operator/runtime/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cassert>
#include <set>
#include <sstream>
#include <utility>

#include "operator/runtime/pool_metrics.h"
#include "operator/runtime/process_stats.h"
#include "operator/runtime/version.h"

namespace holdfast::runtime {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

constexpr const char* kController = "durablejob";
constexpr const char* kPhases[] = {"New",        "Pending",   "Running", "Backoff",  "Suspended",
                                   "Cancelling", "Succeeded", "Failed",  "Cancelled"};
constexpr const char* kOutcomes[] = {"Succeeded",    "Failed",           "Lost",      "Hung",
                                     "StartTimeout", "DeadlineExceeded", "Suspended", "Cancelled",
                                     "Deferred",     "HandedBack"};
constexpr const char* kStagePhases[] = {"Succeeded", "Failed", "Skipped"};
// Queues of a namespace with series of their own. All others share one.
constexpr int kQueuesShown = 100;
constexpr const char* kOtherQueues = "(others)";
constexpr const char* kResults[] = {"success", "error", "requeue", "requeue_after"};

// The buckets of controller-runtime and client-go, so that their dashboards fit.
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
const Buckets& stage_buckets() {
  static const auto* const buckets =
      new Buckets{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600};
  return *buckets;
}
const Buckets& wait_buckets() {
  static const auto* const buckets =
      new Buckets{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};
  return *buckets;
}
// The bounds are R = 1 s for recoveries after an event, W + R and 2W + R after a window W. The
// windows are 15 s (least), 40 s (default) and 600 s (default startDeadlineSeconds).
const Buckets& recovery_buckets() {
  static const auto* const buckets =
      new Buckets{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 16, 20, 30, 41, 60, 81, 120, 300, 601};
  return *buckets;
}

Family<Counter>& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

const Labels& controller_labels() {
  static const auto* const labels = new Labels{{"controller", kController}};
  return *labels;
}
const Labels& queue_labels() {
  static const auto* const labels = new Labels{{"controller", kController}, {"name", kController}};
  return *labels;
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::string host;
  Sources sources;

  // controller_runtime_*
  Family<Counter>& reconciles =
      counters(registry, "controller_runtime_reconcile_total", "Reconciles by result.");
  Counter& reconcile_errors = counters(registry, "controller_runtime_reconcile_errors_total",
                                       "Reconciles that ended with an error.")
                                  .Add(controller_labels());
  Counter& panics = counters(registry, "controller_runtime_reconcile_panics_total",
                             "Reconciles that an exception ended.")
                        .Add(controller_labels());
  Histogram& reconcile_time =
      histograms(registry, "controller_runtime_reconcile_time_seconds",
                 "Length of a reconcile, with the requests that it waits for.")
          .Add(controller_labels(), reconcile_buckets());
  Gauge& max_reconciles = gauges(registry, "controller_runtime_max_concurrent_reconciles",
                                 "Most reconciles in flight (--workers).")
                              .Add(controller_labels());
  Gauge& active_workers =
      gauges(registry, "controller_runtime_active_workers", "Reconciles in flight.")
          .Add(controller_labels());

  // workqueue_*
  Gauge& depth =
      gauges(registry, "workqueue_depth", "Jobs that wait for a worker.").Add(queue_labels());
  Counter& adds =
      counters(registry, "workqueue_adds_total", "Adds to the queue.").Add(queue_labels());
  Histogram& queue_duration =
      histograms(registry, "workqueue_queue_duration_seconds", "Time in the queue until taken.")
          .Add(queue_labels(), queue_buckets());
  Histogram& work_duration =
      histograms(registry, "workqueue_work_duration_seconds", "Time from taken to done.")
          .Add(queue_labels(), queue_buckets());
  Gauge& unfinished_work = gauges(registry, "workqueue_unfinished_work_seconds",
                                  "Sum of the ages of the reconciles in flight.")
                               .Add(queue_labels());
  Gauge& longest_running = gauges(registry, "workqueue_longest_running_processor_seconds",
                                  "Age of the oldest reconcile in flight.")
                               .Add(queue_labels());
  Counter& retries =
      counters(registry, "workqueue_retries_total", "Adds after a failure.").Add(queue_labels());

  // rest_client_*
  Family<Counter>& requests = counters(registry, "rest_client_requests_total",
                                       "Requests to the API server; <error>: no answer came.");
  Family<Histogram>& request_time = histograms(registry, "rest_client_request_duration_seconds",
                                               "Length of a request to the API server.");

  // holdfast_*
  Family<Gauge>& jobs = gauges(registry, "holdfast_jobs", "Jobs by phase.");
  Family<Counter>& attempts =
      counters(registry, "holdfast_attempts_total", "Ended attempts by outcome.");
  Family<Counter>& stages = counters(registry, "holdfast_stages_total",
                                     "Stages of jobs with stages that are over, by how they went.");
  Histogram& stage_time = histograms(registry, "holdfast_stage_duration_seconds",
                                     "From a stage's first attempt to its end.")
                              .Add({}, stage_buckets());
  Family<Histogram>& recovery =
      histograms(registry, "holdfast_recovery_seconds",
                 "From the beginning of the trouble to the next attempt's pod (or the job's end).");
  // The series of a queue go when it, or its shard, has gone.
  struct QueueSeries {
    Gauge* running;
    Gauge* waiting;
    Gauge* oldest_wait;
    Gauge* lag;
    Counter* admissions;
    Histogram* waits;
  };
  Family<Gauge>& queue_running =
      gauges(registry, "holdfast_queue_running", "Permits of the queue that are out.");
  Family<Gauge>& queue_waiting =
      gauges(registry, "holdfast_queue_waiting", "Jobs that wait in the queue.");
  Family<Gauge>& queue_oldest_wait =
      gauges(registry, "holdfast_queue_oldest_wait_seconds", "How long its oldest job has waited.");
  Family<Gauge>& queue_lag =
      gauges(registry, "holdfast_queue_admission_lag_seconds",
             "For how long a waiting job could have been admitted and was not; should be about 0.");
  Family<Counter>& queue_admissions =
      counters(registry, "holdfast_queue_admissions_total", "Permits that the queue has given.");
  Family<Histogram>& queue_waits = histograms(registry, "holdfast_queue_wait_seconds",
                                              "How long admitted jobs have waited in the queue.");
  std::map<std::pair<std::string, std::string>, QueueSeries> queues;
  PoolMetrics pools{registry};
  Family<Counter>& fenced = counters(registry, "holdfast_fenced_outcomes_total",
                                     "Ends that pods of old attempts reported; they do not count.");
  Gauge& overdue =
      gauges(registry, "holdfast_oldest_overdue_seconds",
             "Longest time that a job's deadline has passed without an action; should be 0.")
          .Add({});
  Family<Gauge>& watch_quiet = gauges(registry, "holdfast_watch_quiet_seconds",
                                      "Since the last byte on the kind's quietest watch.");
  Family<Gauge>& watch_live =
      gauges(registry, "holdfast_watch_live", "1 while a watch of the kind is open.");
  Family<Gauge>& watch_closed = gauges(registry, "holdfast_watch_closed_namespaces",
                                       "Namespaces without an open watch of the kind.");
  Family<Gauge>& cached =
      gauges(registry, "holdfast_cache_objects", "Objects of the kind in the cache.");
  Gauge& acting = gauges(registry, "holdfast_member_acting",
                         "1 while this replica may act: its member Lease is renewed.")
                      .Add({});
  Gauge& renewal_age = gauges(registry, "holdfast_member_renewal_age_seconds",
                              "Since the last acknowledged renewal of the member Lease was sent.")
                           .Add({});
  Gauge& members =
      gauges(registry, "holdfast_members_alive", "Live members, as this replica sees them.")
          .Add({});
  Gauge& shards_held =
      gauges(registry, "holdfast_shards_held", "Shards that this replica works on.").Add({});
  Gauge& shards_orphaned = gauges(registry, "holdfast_shards_orphaned",
                                  "Shards that no live member holds, as this replica sees them.")
                               .Add({});
  Family<Counter>& shard_moves = counters(registry, "holdfast_shard_moves_total",
                                          "Shards that came to this replica or left it, by how.");
  Family<Counter>& notifications = counters(registry, "holdfast_notifications_total",
                                            "Tries to deliver an event to a target, by result.");
  Family<Gauge>& notifications_waiting =
      gauges(registry, "holdfast_notifications_waiting", "Events that a target has not taken yet.");
  Counter& events_dropped = counters(registry, "holdfast_events_dropped_total",
                                     "Events that were not written: too many, or refused.")
                                .Add({});
  Gauge& build_info = gauges(registry, "holdfast_build_info", "1, with the version as a label.")
                          .Add({{"version", kVersion}, {"compiler", "g++ " __VERSION__}});

  // process_*
  Gauge& resident = gauges(registry, "process_resident_memory_bytes", "Resident memory.").Add({});
  Gauge& virtual_memory =
      gauges(registry, "process_virtual_memory_bytes", "Virtual memory.").Add({});
  Counter& cpu =
      counters(registry, "process_cpu_seconds_total", "CPU time, user and system.").Add({});
  Gauge& open_fds = gauges(registry, "process_open_fds", "Open file descriptors.").Add({});
  Gauge& max_fds = gauges(registry, "process_max_fds", "Most open file descriptors.").Add({});
  Gauge& threads = gauges(registry, "process_threads", "Threads.").Add({});
  Gauge& start_time =
      gauges(registry, "process_start_time_seconds", "Start, since the epoch.").Add({});

  Counter& request_counter(const std::string& verb, const std::string& code) {
    return requests.Add({{"code", code}, {"method", verb}, {"host", host}});
  }
  Histogram& request_histogram(const std::string& verb) {
    return request_time.Add({{"verb", verb}, {"host", host}}, request_buckets());
  }
  std::string shown_queue(const std::string& namespace_, const std::string& queue) const;
  QueueSeries& series_of(const std::string& namespace_, const std::string& queue);
  void refresh_queues(const std::vector<controller::QueueCount>& counts);
  void create_at_zero();
  Histogram& recovery_from(reconciler::OrphanClass orphan_class) {
    return recovery.Add({{"class", to_string(orphan_class)}}, recovery_buckets());
  }
  void refresh();
  void refresh_ownership(const controller::OwnershipReport& report);
};

void Metrics::State::create_at_zero() {
  for (const char* const result : kResults) {
    reconciles.Add({{"controller", kController}, {"result", result}});
  }
  for (const char* const phase : kPhases) jobs.Add({{"phase", phase}});
  for (const char* const phase : kStagePhases) stages.Add({{"phase", phase}});
  for (const char* const outcome : kOutcomes) attempts.Add({{"outcome", outcome}});
  for (int each = 1; each <= static_cast<int>(reconciler::kLastOrphanClass); ++each) {
    recovery_from(static_cast<reconciler::OrphanClass>(each));
  }
  for (const char* const phase : {"Succeeded", "Failed"}) fenced.Add({{"pod_phase", phase}});
  for (const char* const how : controller::kShardMoves) shard_moves.Add({{"how", how}});
  build_info.Set(1);
}

Metrics::State::QueueSeries& Metrics::State::series_of(const std::string& namespace_,
                                                       const std::string& queue) {
  const auto found = queues.find({namespace_, queue});
  if (found != queues.end()) return found->second;
  const Labels labels = {{"namespace", namespace_}, {"queue", queue}};
  const QueueSeries series{
      &queue_running.Add(labels),     &queue_waiting.Add(labels),
      &queue_oldest_wait.Add(labels), &queue_lag.Add(labels),
      &queue_admissions.Add(labels),  &queue_waits.Add(labels, wait_buckets())};
  return queues.emplace(std::pair(namespace_, queue), series).first->second;
}

// A namespace may have any number of queues, and each costs some twenty lines at each scrape.
std::string Metrics::State::shown_queue(const std::string& namespace_,
                                        const std::string& queue) const {
  if (queues.count({namespace_, queue}) != 0) return queue;
  int shown = 0;
  for (auto one = queues.lower_bound({namespace_, ""});
       one != queues.end() && one->first.first == namespace_; ++one) {
    ++shown;
  }
  return shown < kQueuesShown ? queue : kOtherQueues;
}

void Metrics::State::refresh_queues(const std::vector<controller::QueueCount>& counts) {
  std::map<std::pair<std::string, std::string>, controller::QueueCount> there;
  for (const controller::QueueCount& count : counts) {
    const std::string name = shown_queue(count.namespace_, count.name);
    series_of(count.namespace_, name);
    controller::QueueCount& sum = there[{count.namespace_, name}];
    sum.running += count.running;
    sum.waiting += count.waiting;
    sum.oldest_wait = std::max(sum.oldest_wait, count.oldest_wait);
    sum.lag = std::max(sum.lag, count.lag);
  }
  for (const auto& [key, sum] : there) {
    const QueueSeries& series = queues.at(key);
    series.running->Set(static_cast<double>(sum.running));
    series.waiting->Set(static_cast<double>(sum.waiting));
    series.oldest_wait->Set(to_seconds(sum.oldest_wait));
    series.lag->Set(to_seconds(sum.lag));
  }
  for (auto one = queues.begin(); one != queues.end();) {
    if (there.count(one->first) != 0) {
      ++one;
      continue;
    }
    const QueueSeries& series = one->second;
    queue_running.Remove(series.running);
    queue_waiting.Remove(series.waiting);
    queue_oldest_wait.Remove(series.oldest_wait);
    queue_lag.Remove(series.lag);
    queue_admissions.Remove(series.admissions);
    queue_waits.Remove(series.waits);
    one = queues.erase(one);
  }
}

// Counters only rise: adds the difference between the new total and the last one.
void raise_to(Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

void Metrics::State::refresh_ownership(const controller::OwnershipReport& report) {
  std::set<std::string> alive;
  for (const auto& member : report.members) {
    if (member.alive) alive.insert(member.name);
  }
  int held = 0;
  int orphaned = 0;
  for (const auto& shard : report.shards) {
    if (shard.held) ++held;
    if (alive.count(shard.holder) == 0) ++orphaned;
  }
  acting.Set(report.state == controller::MembershipState::kActing ? 1 : 0);
  renewal_age.Set(to_seconds(report.renewal_age));
  members.Set(static_cast<double>(alive.size()));
  shards_held.Set(held);
  shards_orphaned.Set(orphaned);
}

void Metrics::State::refresh() {
  if (sources.jobs_by_phase) {
    for (const char* const phase : kPhases) jobs.Add({{"phase", phase}}).Set(0);
    for (const auto& [phase, count] : sources.jobs_by_phase()) {
      jobs.Add({{"phase", phase.empty() ? "New" : phase}}).Set(static_cast<double>(count));
    }
  }
  if (sources.oldest_overdue) overdue.Set(to_seconds(sources.oldest_overdue()));
  if (sources.watches) {
    for (const auto& [kind, watch] : sources.watches()) {
      watch_quiet.Add({{"kind", kind}}).Set(to_seconds(watch.quiet));
      watch_live.Add({{"kind", kind}}).Set(watch.live ? 1 : 0);
      watch_closed.Add({{"kind", kind}}).Set(watch.closed);
      cached.Add({{"kind", kind}}).Set(static_cast<double>(watch.objects));
    }
  }
  if (sources.queues) refresh_queues(sources.queues());
  if (sources.pools) pools.refresh(sources.pools());
  if (sources.notifications) {
    for (const auto& [target, count] : sources.notifications()) {
      notifications_waiting.Add({{"target", target}}).Set(static_cast<double>(count));
    }
  }
  if (sources.ownership) refresh_ownership(sources.ownership());
  if (sources.events_dropped) {
    raise_to(events_dropped, static_cast<double>(sources.events_dropped()));
  }
  if (sources.queue_depth) depth.Set(static_cast<double>(sources.queue_depth()));
  if (sources.unfinished_work) unfinished_work.Set(to_seconds(sources.unfinished_work()));
  if (sources.longest_running) longest_running.Set(to_seconds(sources.longest_running()));

  const ProcessStats stats = read_process_stats();
  resident.Set(stats.resident_bytes);
  virtual_memory.Set(stats.virtual_bytes);
  raise_to(cpu, stats.cpu_seconds);
  open_fds.Set(stats.open_fds);
  max_fds.Set(stats.max_fds);
  threads.Set(stats.threads);
  start_time.Set(stats.start_time_seconds);
}

Metrics::Metrics(int workers) : state_(std::make_unique<State>()) {
  state_->create_at_zero();
  state_->max_reconciles.Set(workers);
}
Metrics::~Metrics() = default;

void Metrics::name_api_server(const std::string& host) {
  State& state = *state_;
  state.host = host;
  for (const auto& [verb, code] :
       {std::pair("GET", "200"), std::pair("POST", "201"), std::pair("PUT", "200"),
        std::pair("PATCH", "200"), std::pair("DELETE", "200"), std::pair("WATCH", "200")}) {
    state.request_counter(verb, code);
    state.request_counter(verb, "<error>");
    state.request_histogram(verb);
  }
}

void Metrics::name_targets(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* const result : controller::kNotificationResults) {
      state_->notifications.Add({{"target", name}, {"result", result}});
    }
    state_->notifications_waiting.Add({{"target", name}});
  }
}

void Metrics::notified(const std::string& target, const std::string& result) {
  state_->notifications.Add({{"target", target}, {"result", result}}).Increment();
}

void Metrics::set_sources(Sources sources) { state_->sources = std::move(sources); }

kube::RequestObserver Metrics::request_observer() {
  return {[state = state_.get()](const std::string& verb, int code, Duration took) {
    state->request_counter(verb, code == 0 ? "<error>" : std::to_string(code)).Increment();
    state->request_histogram(verb).Observe(to_seconds(took));
  }};
}

controller::ReconcilePool::Metrics Metrics::pool_metrics() {
  State* const state = state_.get();
  controller::ReconcilePool::Metrics metrics;
  metrics.queue.on_add = [state] { state->adds.Increment(); };
  metrics.queue.on_retry = [state] { state->retries.Increment(); };
  metrics.queue.on_take = [state](Duration queued) {
    state->queue_duration.Observe(to_seconds(queued));
  };
  metrics.queue.on_done = [state](Duration worked) {
    state->work_duration.Observe(to_seconds(worked));
  };
  metrics.on_active = [state](int active) { state->active_workers.Set(active); };
  metrics.on_result = [state](const char* result, Duration took) {
    state->reconciles.Add({{"controller", kController}, {"result", result}}).Increment();
    if (result == std::string("error")) state->reconcile_errors.Increment();
    state->reconcile_time.Observe(to_seconds(took));
  };
  metrics.on_exception = [state] { state->panics.Increment(); };
  return metrics;
}

void Metrics::attempt_ended(const std::string& outcome) {
  state_->attempts.Add({{"outcome", outcome}}).Increment();
}

void Metrics::stage_ended(const std::string& phase, std::optional<Duration> took) {
  state_->stages.Add({{"phase", phase}}).Increment();
  if (took) state_->stage_time.Observe(to_seconds(*took));
}

void Metrics::recovered(reconciler::OrphanClass orphan_class, Duration took) {
  state_->recovery_from(orphan_class).Observe(to_seconds(took));
}

void Metrics::fenced_outcome(const std::string& pod_phase) {
  state_->fenced.Add({{"pod_phase", pod_phase}}).Increment();
}

void Metrics::admitted(const std::string& namespace_, const std::string& queue, Duration waited) {
  const State::QueueSeries& series =
      state_->series_of(namespace_, state_->shown_queue(namespace_, queue));
  series.admissions->Increment();
  series.waits->Observe(to_seconds(waited));
}

void Metrics::slot_taken(const std::string& namespace_, const std::string& pool, Duration waited) {
  state_->pools.slot_taken(namespace_, pool, waited);
}

void Metrics::handed_back(const std::string& namespace_, const std::string& pool) {
  state_->pools.handed_back(namespace_, pool);
}

void Metrics::cut_off(const std::string& namespace_, const std::string& pool,
                      const std::string& reason) {
  state_->pools.cut_off(namespace_, pool, reason);
}

void Metrics::shard_moved(const std::string& how) {
  state_->shard_moves.Add({{"how", how}}).Increment();
}

std::string Metrics::text() {
  state_->refresh();
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, state_->registry.Collect());
  return out.str();
}

}  // namespace holdfast::runtime
