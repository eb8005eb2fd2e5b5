#include "reconciler/run/creations.h"

#include <algorithm>

#include "reconciler/refusals.h"

namespace holdfast::reconciler {
namespace {

// A watch may show a pod so much later than it was created.
constexpr seconds kShown{10};

bool is_podless(const Run& run) {
  return !run.at_worker() && !run.pod_name.empty() && run.pod_uid.empty() && run.node_name.empty();
}

bool is_podless(const HistoryEntry& entry) {
  return entry.worker_name.empty() && !entry.pod_name.empty() && entry.pod_uid.empty() &&
         entry.node_name.empty();
}

const OpenCreation* creation_in(const JobView& view, std::int64_t attempt) {
  const auto& creations = view.observed.creations;
  const auto found = std::lower_bound(
      creations.begin(), creations.end(), attempt,
      [](const OpenCreation& one, std::int64_t number) { return one.attempt < number; });
  return found != creations.end() && found->attempt == attempt ? &*found : nullptr;
}

}  // namespace

std::vector<PodlessAttempt> podless_attempts(const Status& status, Time now) {
  std::vector<PodlessAttempt> found;
  const auto ended = [&](std::int64_t attempt) -> std::optional<Time> {
    for (const HistoryEntry& entry : status.history) {
      if (entry.attempt == attempt && entry.end_time) return entry.end_time;
    }
    return std::nullopt;
  };
  for (const Run& run : status.runs) {
    if (!is_podless(run)) continue;
    found.push_back({run.attempt, run.pod_name});
    if (run.open()) continue;
    const std::optional<Time> end = ended(run.attempt);
    found.back().closed = end ? end : run.next_attempt_time;
  }
  for (const HistoryEntry& entry : status.history) {
    const bool is_recent = entry.end_time && now - *entry.end_time < kCreationLimit + kShown;
    const bool has_run = std::any_of(status.runs.begin(), status.runs.end(),
                                     [&](const Run& run) { return run.attempt == entry.attempt; });
    if (!is_podless(entry) || !is_recent || has_run) continue;
    found.push_back({entry.attempt, entry.pod_name, entry.end_time});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  return found;
}

bool is_being_created(const JobView& view, std::int64_t attempt) {
  const OpenCreation* const found = creation_in(view, attempt);
  return found && found->expected;
}

const OpenCreation* creation_of(const JobView& view, std::int64_t attempt) {
  const OpenCreation* const found = creation_in(view, attempt);
  const bool may_come = found && (found->expected || (found->asked && found->left > Duration(0)));
  return may_come ? found : nullptr;
}

const OpenCreation* last_creation(const JobView& view) {
  const OpenCreation* last = nullptr;
  for (const OpenCreation& one : view.observed.creations) {
    if (one.asked && (!last || one.left > last->left)) last = &one;
  }
  return last;
}

}  // namespace holdfast::reconciler
