#include "operator/runtime/metrics.h"

#include <prometheus/text_serializer.h>

#include <set>
#include <sstream>
#include <utility>

#include "operator/runtime/metric_families.h"
#include "operator/runtime/namespace_metrics.h"
#include "operator/runtime/pool_metrics.h"
#include "operator/runtime/process_stats.h"
#include "operator/runtime/queue_metrics.h"
#include "operator/runtime/version.h"
#include "operator/runtime/work_metrics.h"

namespace holdfast::runtime {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr const char* kStagePhases[] = {"Succeeded", "Failed", "Skipped"};

const Buckets& stage_buckets() {
  static const auto* const buckets =
      new Buckets{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600};
  return *buckets;
}
// The bounds are R = 1 s for recoveries after an event, W + R and 2W + R after a window W. The
// windows are 15 s (least), 40 s (default) and 600 s (default startDeadlineSeconds).
const Buckets& recovery_buckets() {
  static const auto* const buckets =
      new Buckets{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 16, 20, 30, 41, 60, 81, 120, 300, 601};
  return *buckets;
}

}  // namespace

struct Metrics::State {
  explicit State(int workers) : work(registry, workers) {}

  prometheus::Registry registry;
  Sources sources;
  WorkMetrics work;
  QueueMetrics queues{registry};
  PoolMetrics pools{registry};
  NamespaceMetrics namespaces{registry};

  // holdfast_*
  Gauges& jobs = gauges(registry, "holdfast_jobs", "Jobs by phase.");
  Counters& attempts = counters(registry, "holdfast_attempts_total", "Ended attempts by outcome.");
  Counters& stages = counters(registry, "holdfast_stages_total",
                              "Stages of jobs with stages that are over, by how they went.");
  Histogram& stage_time = histograms(registry, "holdfast_stage_duration_seconds",
                                     "From a stage's first attempt to its end.")
                              .Add({}, stage_buckets());
  Histograms& recovery =
      histograms(registry, "holdfast_recovery_seconds",
                 "From the beginning of the trouble to the next attempt's pod (or the job's end).");
  Counters& fenced = counters(registry, "holdfast_fenced_outcomes_total",
                              "Ends that pods of old attempts reported; they do not count.");
  Gauge& overdue =
      gauges(registry, "holdfast_oldest_overdue_seconds",
             "Longest time that a job's deadline has passed without an action; should be 0.")
          .Add({});
  Gauges& watch_quiet = gauges(registry, "holdfast_watch_quiet_seconds",
                               "Since the last byte on the kind's quietest watch.");
  Gauges& watch_live =
      gauges(registry, "holdfast_watch_live", "1 while a watch of the kind is open.");
  Gauges& watch_closed = gauges(registry, "holdfast_watch_closed_namespaces",
                                "Namespaces without an open watch of the kind.");
  Gauges& cached = gauges(registry, "holdfast_cache_objects", "Objects of the kind in the cache.");
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
  Counters& shard_moves = counters(registry, "holdfast_shard_moves_total",
                                   "Shards that came to this replica or left it, by how.");
  Counters& notifications = counters(registry, "holdfast_notifications_total",
                                     "Tries to deliver an event to a target, by result.");
  Gauges& notifications_waiting =
      gauges(registry, "holdfast_notifications_waiting", "Events that a target has not taken yet.");
  Counters& notifications_dropped =
      counters(registry, "holdfast_notifications_dropped_total",
               "Events that a target will not get: refused, given up, or without room.");
  // By target. Jobs may name others, which share a series.
  std::map<std::string, Counter*> dropped_for;
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

  void create_at_zero();
  Histogram& recovery_from(reconciler::OrphanClass orphan_class) {
    return recovery.Add({{"class", to_string(orphan_class)}}, recovery_buckets());
  }
  void refresh();
  void refresh_jobs(const std::map<std::string, NamespaceMetrics::Phases>& by_namespace);
  void refresh_ownership(const controller::OwnershipReport& report);
};

void Metrics::State::create_at_zero() {
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

void Metrics::State::refresh_jobs(
    const std::map<std::string, NamespaceMetrics::Phases>& by_namespace) {
  NamespaceMetrics::Phases sum;
  for (const auto& [_, phases] : by_namespace) {
    for (const auto& [phase, number] : phases) sum[phase.empty() ? kNoPhase : phase] += number;
  }
  for (const char* const phase : kPhases) {
    jobs.Add({{"phase", phase}}).Set(static_cast<double>(sum[phase]));
  }
  namespaces.refresh(by_namespace);
}

void Metrics::State::refresh() {
  if (sources.jobs) refresh_jobs(sources.jobs());
  if (sources.oldest_overdue) overdue.Set(to_seconds(sources.oldest_overdue()));
  if (sources.watches) {
    for (const auto& [kind, watch] : sources.watches()) {
      watch_quiet.Add({{"kind", kind}}).Set(to_seconds(watch.quiet));
      watch_live.Add({{"kind", kind}}).Set(watch.live ? 1 : 0);
      watch_closed.Add({{"kind", kind}}).Set(watch.closed);
      cached.Add({{"kind", kind}}).Set(static_cast<double>(watch.objects));
    }
  }
  if (sources.queues) queues.refresh(sources.queues());
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
  if (sources.queue_depth) work.set_depth(sources.queue_depth());
  if (sources.unfinished_work && sources.longest_running) {
    work.set_unfinished(sources.unfinished_work(), sources.longest_running());
  }

  const ProcessStats stats = read_process_stats();
  resident.Set(stats.resident_bytes);
  virtual_memory.Set(stats.virtual_bytes);
  raise_to(cpu, stats.cpu_seconds);
  open_fds.Set(stats.open_fds);
  max_fds.Set(stats.max_fds);
  threads.Set(stats.threads);
  start_time.Set(stats.start_time_seconds);
}

Metrics::Metrics(int workers) : state_(std::make_unique<State>(workers)) {
  state_->create_at_zero();
}
Metrics::~Metrics() = default;

void Metrics::name_api_server(const std::string& host) { state_->work.name_api_server(host); }

void Metrics::name_targets(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* const result : controller::kNotificationResults) {
      state_->notifications.Add({{"target", name}, {"result", result}});
    }
    state_->notifications_waiting.Add({{"target", name}});
    state_->dropped_for[name] = &state_->notifications_dropped.Add({{"target", name}});
  }
}

void Metrics::notification_dropped(const std::string& target) {
  const auto known = state_->dropped_for.find(target);
  Counter& counter = known != state_->dropped_for.end()
                         ? *known->second
                         : state_->notifications_dropped.Add({{"target", kOthers}});
  counter.Increment();
}

void Metrics::notified(const std::string& target, const std::string& result) {
  state_->notifications.Add({{"target", target}, {"result", result}}).Increment();
}

void Metrics::set_sources(Sources sources) { state_->sources = std::move(sources); }

kube::RequestObserver Metrics::request_observer() { return state_->work.request_observer(); }

controller::ReconcilePool::Metrics Metrics::pool_metrics() { return state_->work.pool_metrics(); }

void Metrics::attempt_ended(const std::string& namespace_, const std::string& outcome) {
  state_->attempts.Add({{"outcome", outcome}}).Increment();
  state_->namespaces.attempt_ended(namespace_, outcome);
}

void Metrics::job_started(const std::string& namespace_, Duration waited) {
  state_->namespaces.job_started(namespace_, waited);
}

void Metrics::job_ended(const std::string& namespace_, const std::string& phase,
                        std::optional<Duration> took) {
  state_->namespaces.job_ended(namespace_, phase, took);
}

void Metrics::stage_ended(const std::string& phase, std::optional<Duration> took) {
  state_->stages.Add({{"phase", phase}}).Increment();
  if (took) state_->stage_time.Observe(to_seconds(*took));
}

void Metrics::recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                        Duration took) {
  state_->recovery_from(orphan_class).Observe(to_seconds(took));
  state_->namespaces.recovered(namespace_, orphan_class);
}

void Metrics::fenced_outcome(const std::string& pod_phase) {
  state_->fenced.Add({{"pod_phase", pod_phase}}).Increment();
}

void Metrics::admitted(const std::string& namespace_, const std::string& queue, Duration waited) {
  state_->queues.admitted(namespace_, queue, waited);
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
