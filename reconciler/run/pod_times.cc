#include "reconciler/run/pod_times.h"

#include <algorithm>

namespace holdfast::reconciler {

// A start is recorded in whole seconds, an intent never is.
std::optional<Time> recorded_start(const Run& run) {
  const auto& time = run.start_time;
  return time && std::chrono::floor<seconds>(*time) == *time ? time : std::nullopt;
}

bool has_started(const RunContext& context, const PodView& pod) {
  if (pod.started() || pod.placement() != Placement::kBound) return pod.started();
  return context.seen.observed.pod.started || recorded_start(context.run);
}

bool start_is_taken_back(const RunContext& context, const PodView& pod) {
  return !pod.started() && has_started(context, pod);
}

Time placed_since(Time created, std::optional<Time> placed, const PodSightings& seen, Time now) {
  const Time reported = std::min(placed.value_or(created), seen.placed.value_or(now));
  return std::max({reported, created, seen.elsewhere.value_or(created)});
}

Time placed_since(const RunContext& context, const PodView& pod) {
  return placed_since(pod.created, pod.placed, context.seen.observed.pod, context.now);
}

std::optional<Time> attempt_start(const RunContext& context, const PodView& pod) {
  const std::optional<Time> reported = pod.start();
  const PodSightings& seen = context.seen.observed.pod;
  if (!reported) {
    const std::optional<Time> recorded = recorded_start(context.run);
    return recorded ? recorded : seen.started;
  }
  const Time bound = placed_since(context, pod);
  const Time earliest = std::max(bound, seen.unstarted.value_or(bound));
  Time latest = seen.started.value_or(*reported <= context.now ? context.now : earliest);
  if (const auto recorded = recorded_start(context.run)) latest = std::min(latest, *recorded);
  return std::min(std::max(*reported, earliest), std::max(latest, bound));
}

void record_start(const RunContext& context, const PodView& pod, Run& run) {
  const auto start = attempt_start(context, pod);
  if (start) run.start_time = std::chrono::floor<seconds>(*start);
}

}  // namespace holdfast::reconciler
