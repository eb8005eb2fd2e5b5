#include "operator/runtime/job_metrics.h"

namespace holdfast::runtime {
namespace {

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

JobMetrics::JobMetrics(prometheus::Registry& registry)
    : jobs_(gauges(registry, "holdfast_jobs", "Jobs by phase.")),
      attempts_(counters(registry, "holdfast_attempts_total", "Ended attempts by outcome.")),
      stages_(counters(registry, "holdfast_stages_total",
                       "Stages of jobs with stages that are over, by how they went.")),
      stage_time_(histograms(registry, "holdfast_stage_duration_seconds",
                             "From a stage's first attempt to its end.")
                      .Add({}, stage_buckets())),
      recovery_(histograms(
          registry, "holdfast_recovery_seconds",
          "From the beginning of the trouble to the next attempt's pod (or the job's end).")),
      fenced_(counters(registry, "holdfast_fenced_outcomes_total",
                       "Ends that pods of old attempts reported; they do not count.")),
      overdue_(
          gauges(registry, "holdfast_oldest_overdue_seconds",
                 "Longest time that a job's deadline has passed without an action; should be 0.")
              .Add({})),
      namespaces_(registry) {
  for (const char* const phase : kPhases) jobs_.Add({{"phase", phase}});
  for (const char* const phase : kStagePhases) stages_.Add({{"phase", phase}});
  for (const char* const outcome : kOutcomes) attempts_.Add({{"outcome", outcome}});
  for (int each = 1; each <= static_cast<int>(reconciler::kLastOrphanClass); ++each) {
    recovery_from(static_cast<reconciler::OrphanClass>(each));
  }
  for (const char* const phase : {"Succeeded", "Failed"}) fenced_.Add({{"pod_phase", phase}});
}

prometheus::Histogram& JobMetrics::recovery_from(reconciler::OrphanClass orphan_class) {
  return recovery_.Add({{"class", to_string(orphan_class)}}, recovery_buckets());
}

void JobMetrics::attempt_ended(const std::string& namespace_, const std::string& outcome) {
  attempts_.Add({{"outcome", outcome}}).Increment();
  namespaces_.attempt_ended(namespace_, outcome);
}

void JobMetrics::stage_ended(const std::string& phase, std::optional<Duration> took) {
  stages_.Add({{"phase", phase}}).Increment();
  if (took) stage_time_.Observe(to_seconds(*took));
}

void JobMetrics::recovered(const std::string& namespace_, reconciler::OrphanClass orphan_class,
                           Duration took) {
  recovery_from(orphan_class).Observe(to_seconds(took));
  namespaces_.recovered(namespace_, orphan_class);
}

void JobMetrics::fenced_outcome(const std::string& pod_phase) {
  fenced_.Add({{"pod_phase", pod_phase}}).Increment();
}

void JobMetrics::refresh(const std::map<std::string, NamespaceMetrics::Phases>& by_namespace) {
  NamespaceMetrics::Phases sum;
  for (const auto& [_, phases] : by_namespace) {
    for (const auto& [phase, number] : phases) sum[phase.empty() ? kNoPhase : phase] += number;
  }
  for (const char* const phase : kPhases) {
    jobs_.Add({{"phase", phase}}).Set(static_cast<double>(sum[phase]));
  }
  namespaces_.refresh(by_namespace);
}

void JobMetrics::set_overdue(Duration oldest) { overdue_.Set(to_seconds(oldest)); }

}  // namespace holdfast::runtime
