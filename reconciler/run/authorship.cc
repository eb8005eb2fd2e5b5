#include "reconciler/run/authorship.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace holdfast::reconciler {
namespace {

// The UID in the holder "<pod name>/<pod UID>". Empty: no holder, or another pod name.
std::string uid_in(const std::string& holder, const std::string& pod_name) {
  const bool names = holder.starts_with(pod_name) && holder.size() > pod_name.size() + 1 &&
                     holder[pod_name.size()] == '/';
  return names ? holder.substr(pod_name.size() + 1) : "";
}

bool is_owned(const JobView& view, const PodView& pod) { return pod.owner_uid == view.job.uid; }

bool is_current(const JobView& view, const Run& run, const RunView& seen, const PodView& pod) {
  if (run.pod_name.empty() || pod.name != run.pod_name) return false;
  const auto& strangers = seen.observed.strangers;
  if (std::find(strangers.begin(), strangers.end(), pod.uid) != strangers.end()) return false;
  const std::string known = known_pod_uid(run, seen);
  if (!known.empty()) return pod.uid == known;
  const bool of_another = !pod.owner_uid.empty() && !is_owned(view, pod);
  return pod.intent && pod.intent == run.start_time && !of_another;
}

}  // namespace

std::string known_pod_uid(const Run& run, const RunView& seen) {
  if (run.at_worker()) return run.worker_uid;  // as slot_as_pod() shows it
  if (!run.pod_uid.empty()) return run.pod_uid;
  if (!seen.observed.pod_uid.empty()) return seen.observed.pod_uid;
  if (!seen.lease || seen.lease->attempt != run.attempt) return "";
  const std::string holder = uid_in(seen.lease->holder, run.pod_name);
  return !holder.empty() ? holder : uid_in(seen.lease->granted, run.pod_name);
}

const PodView* current_pod(const JobView& view, std::size_t position) {
  const Run& run = view.job.status.runs.at(position);
  for (const PodView& pod : view.pods) {
    if (is_current(view, run, view.seen(position), pod)) return &pod;
  }
  return nullptr;
}

std::vector<const PodView*> current_pods(const JobView& view) {
  const std::vector<Run>& runs = view.job.status.runs;
  std::unordered_map<std::string_view, std::size_t> positions;
  for (std::size_t position = 0; position < runs.size(); ++position)
    positions[runs[position].pod_name] = position;
  std::vector<const PodView*> pods(runs.size(), nullptr);
  for (const PodView& pod : view.pods) {
    const auto named = positions.find(pod.name);
    if (named == positions.end()) continue;
    const std::size_t position = named->second;
    if (!pods[position] && is_current(view, runs[position], view.seen(position), pod))
      pods[position] = &pod;
  }
  return pods;
}

std::string proven_pod_uid(const JobView& view, std::size_t position, const PodView* current) {
  const Run& run = view.job.status.runs.at(position);
  const RunView& seen = view.seen(position);
  return current && is_proven(view, run, seen, *current) ? current->uid : known_pod_uid(run, seen);
}

bool is_ours(const JobView& view, const PodView& pod) {
  if (is_owned(view, pod)) return true;
  const Status& status = view.job.status;
  for (std::size_t position = 0; position < status.runs.size(); ++position) {
    if (is_current(view, status.runs[position], view.seen(position), pod)) return true;
  }
  return std::any_of(status.history.begin(), status.history.end(),
                     [&](const HistoryEntry& entry) { return entry.pod_uid == pod.uid; });
}

bool is_proven(const JobView& view, const Run& run, const RunView& seen, const PodView& pod) {
  return is_current(view, run, seen, pod) &&
         (is_owned(view, pod) || pod.uid == known_pod_uid(run, seen));
}

LastPod last_pod(const Status& status) {
  if (!status.runs.empty()) return {status.runs.front().pod_name, status.runs.front().pod_uid};
  if (status.history.empty()) return {};
  return {status.history.back().pod_name, status.history.back().pod_uid};
}

}  // namespace holdfast::reconciler
