#include "reconciler/pod.h"

#include <algorithm>

namespace holdfast::reconciler {

const char* to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
    case PodPhase::kUnknown:
      return "Unknown";
  }
  return "Unknown";
}

Placement PodView::placement() const {
  if (!node_name.empty()) return Placement::kBound;
  if (!gates.empty()) return Placement::kGated;
  return unschedulable.empty() ? Placement::kUnseen : Placement::kUnschedulable;
}

bool ended_for_good(const PodView& pod, const ContainerView& container) {
  if (!container.terminated) return false;
  return !container.may_restart || (pod.ended() && !pod.disruption_target);
}

bool PodView::started() const {
  if (phase == PodPhase::kRunning || phase == PodPhase::kSucceeded) return true;
  return std::any_of(containers.begin(), containers.end(),
                     [](const ContainerView& c) { return c.started; });
}

bool PodView::stands_still() const {
  const auto waits = [](const ContainerView& c) { return !c.started; };
  const auto runs = [](const ContainerView& c) { return c.started && !c.terminated && !c.sidecar; };
  return !ended() && std::any_of(containers.begin(), containers.end(), waits) &&
         std::none_of(containers.begin(), containers.end(), runs);
}

int PodView::steps() const {
  int steps = 0;
  for (const ContainerView& container : containers) {
    steps += container.started ? 1 : 0;
    // A sidecar may end and start again without limit.
    steps += ended_for_good(*this, container) && !container.sidecar ? 1 : 0;
  }
  return steps;
}

std::optional<Time> PodView::start() const {
  std::optional<Time> first;
  for (const ContainerView& container : containers) {
    if (container.started_at && (!first || *container.started_at < *first)) {
      first = container.started_at;
    }
  }
  return first;
}

}  // namespace holdfast::reconciler
