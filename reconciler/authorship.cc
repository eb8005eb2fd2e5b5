#include "reconciler/authorship.h"

#include <algorithm>

#include "reconciler/decide.h"

namespace holdfast::reconciler {
namespace {

// The UID in the holder "<pod name>/<pod UID>". Empty: no holder, or another pod name.
std::string uid_in(const std::string& holder, const std::string& pod_name) {
  const bool names = holder.starts_with(pod_name) && holder.size() > pod_name.size() + 1 &&
                     holder[pod_name.size()] == '/';
  return names ? holder.substr(pod_name.size() + 1) : "";
}

bool is_owned(const JobView& view, const PodView& pod) { return pod.owner_uid == view.job.uid; }

bool is_current(const JobView& view, const PodView& pod) {
  const Status& status = view.job.status;
  if (status.pod_name.empty() || pod.name != status.pod_name) return false;
  const std::string known = known_pod_uid(view);
  if (!known.empty()) return pod.uid == known;
  const bool of_another = !pod.owner_uid.empty() && !is_owned(view, pod);
  return pod.intent && pod.intent == status.attempt_start_time && !of_another;
}

}  // namespace

std::string known_pod_uid(const JobView& view) {
  const Status& status = view.job.status;
  if (!status.pod_uid.empty()) return status.pod_uid;
  if (!view.observed.pod_uid.empty()) return view.observed.pod_uid;
  if (!view.lease || view.lease->attempt != status.attempt) return "";
  const std::string holder = uid_in(view.lease->holder, status.pod_name);
  return !holder.empty() ? holder : uid_in(view.lease->granted, status.pod_name);
}

std::string proven_pod_uid(const JobView& view) {
  const PodView* const pod = current_pod(view);
  return pod && is_proven(view, *pod) ? pod->uid : known_pod_uid(view);
}

const PodView* current_pod(const JobView& view) {
  for (const PodView& pod : view.pods) {
    if (is_current(view, pod)) return &pod;
  }
  return nullptr;
}

bool is_ours(const JobView& view, const PodView& pod) {
  if (is_owned(view, pod) || is_current(view, pod)) return true;
  const auto& history = view.job.status.history;
  return std::any_of(history.begin(), history.end(),
                     [&](const HistoryEntry& entry) { return entry.pod_uid == pod.uid; });
}

bool is_proven(const JobView& view, const PodView& pod) {
  return is_current(view, pod) && (is_owned(view, pod) || pod.uid == known_pod_uid(view));
}

}  // namespace holdfast::reconciler
