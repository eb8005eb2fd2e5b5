#include "operator/runtime/namespace_metrics.h"

#include <algorithm>
#include <utility>

namespace holdfast::runtime {
namespace {

constexpr const char* kTerminalPhases[] = {"Succeeded", "Failed", "Cancelled"};

const Buckets& duration_buckets() {
  static const auto* const buckets =
      new Buckets{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};
  return *buckets;
}

void count(const std::map<std::string, prometheus::Counter*>& counters, const std::string& label) {
  const auto counter = counters.find(label);
  if (counter != counters.end()) counter->second->Increment();
}

}  // namespace

NamespaceMetrics::NamespaceMetrics(prometheus::Registry& registry)
    : jobs_(gauges(registry, "holdfast_namespace_jobs", "Jobs of the namespace by phase.")),
      ended_(counters(registry, "holdfast_namespace_jobs_ended_total",
                      "Jobs that have ended, by phase.")),
      attempts_(counters(registry, "holdfast_namespace_attempts_total",
                         "Ended attempts of the namespace's jobs by outcome.")),
      recovered_(counters(registry, "holdfast_namespace_recoveries_total",
                          "Attempts that were replaced after trouble, by what it was.")),
      duration_(histograms(registry, "holdfast_namespace_job_duration_seconds",
                           "From a job's first attempt to its end.")),
      wait_(histograms(registry, "holdfast_namespace_job_wait_seconds",
                       "From a job's creation to its first attempt.")),
      series_([this](const Table::Key& key) { return create(key.second); },
              [this](const Series& series) { remove(series); }) {}

void NamespaceMetrics::attempt_ended(const std::string& namespace_, const std::string& outcome) {
  count(series_of(namespace_).attempts, outcome);
}

void NamespaceMetrics::job_started(const std::string& namespace_, Duration waited) {
  series_of(namespace_).wait->Observe(std::max(0.0, to_seconds(waited)));
}

void NamespaceMetrics::job_ended(const std::string& namespace_, const std::string& phase,
                                 std::optional<Duration> took) {
  const Series& series = series_of(namespace_);
  count(series.ended, phase);
  if (took) series.duration->Observe(std::max(0.0, to_seconds(*took)));
}

void NamespaceMetrics::recovered(const std::string& namespace_,
                                 reconciler::OrphanClass orphan_class) {
  count(series_of(namespace_).recovered, to_string(orphan_class));
}

void NamespaceMetrics::refresh(const std::map<std::string, Phases>& namespaces) {
  series_.mark([&](const Table::Key& key) { return namespaces.count(key.second) != 0; });
  series_.for_each([](const Series& series) {
    for (const auto& [phase, gauge] : series.jobs) gauge->Set(0);
  });
  for (const auto& [namespace_, phases] : namespaces) {
    const Series& series = series_of(namespace_);
    for (const auto& [phase, number] : phases) {
      series.jobs.at(phase.empty() ? kNoPhase : phase)->Increment(static_cast<double>(number));
    }
  }
}

// At zero, so that rates work from the first scrape.
NamespaceMetrics::Series NamespaceMetrics::create(const std::string& namespace_) {
  const auto with = [&](const char* label, const std::string& value) {
    return prometheus::Labels{{"namespace", namespace_}, {label, value}};
  };
  Series series;
  for (const char* const phase : kPhases) series.jobs[phase] = &jobs_.Add(with("phase", phase));
  for (const char* const phase : kTerminalPhases) {
    series.ended[phase] = &ended_.Add(with("phase", phase));
  }
  for (const char* const outcome : kOutcomes) {
    series.attempts[outcome] = &attempts_.Add(with("outcome", outcome));
  }
  for (int each = 1; each <= static_cast<int>(reconciler::kLastOrphanClass); ++each) {
    const std::string name = to_string(static_cast<reconciler::OrphanClass>(each));
    series.recovered[name] = &recovered_.Add(with("class", name));
  }
  series.duration = &duration_.Add({{"namespace", namespace_}}, duration_buckets());
  series.wait = &wait_.Add({{"namespace", namespace_}}, wait_buckets());
  return series;
}

void NamespaceMetrics::remove(const Series& series) {
  for (const auto& [phase, gauge] : series.jobs) jobs_.Remove(gauge);
  for (const auto& [phase, counter] : series.ended) ended_.Remove(counter);
  for (const auto& [outcome, counter] : series.attempts) attempts_.Remove(counter);
  for (const auto& [name, counter] : series.recovered) recovered_.Remove(counter);
  duration_.Remove(series.duration);
  wait_.Remove(series.wait);
}

}  // namespace holdfast::runtime
