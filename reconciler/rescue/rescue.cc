#include "reconciler/rescue/rescue.h"

#include <algorithm>
#include <charconv>

namespace holdfast::reconciler {
namespace {

using std::chrono::seconds;

// How often to see whether the path to the nodes is still in doubt.
constexpr seconds kHeldLook{1};
// For what no watch of ours reports: a taint that is removed.
constexpr seconds kTaintLook{30};
constexpr seconds kAllowancePeriod{60};

std::string group_of(const std::string& api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string::npos ? "" : api_version.substr(0, slash);
}

std::optional<RescueRefusal> refusal_of(const RescueView& view) {
  const RescuePod& pod = view.pod;
  if (pod.is_static || pod.owner.kind == "Node") return RescueRefusal::kStaticPod;
  if (pod.owner.kind.empty()) return RescueRefusal::kNoController;
  if (!view.owner_may_be_freed) return RescueRefusal::kOwnerKind;
  if (pod.has_claims && !pod.frees_claims) return RescueRefusal::kVolumes;
  if (!pod.window) return RescueRefusal::kWindow;
  return std::nullopt;
}

}  // namespace

std::optional<seconds> rescue_window(const std::string& annotation) {
  if (annotation.empty()) return kRescueWindow;
  std::int64_t value = 0;
  const char* const end = annotation.data() + annotation.size();
  const auto [rest, error] = std::from_chars(annotation.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  const seconds window(value);
  if (window < kLeastRescueWindow || window > kMostRescueWindow) return std::nullopt;
  return window;
}

bool may_be_freed(const PodOwner& owner, const std::set<std::string>& other_kinds) {
  if (is_never_freed(owner.kind)) return false;
  const std::string group = group_of(owner.api_version);
  if (owner.kind == "Job" && group == "batch") return true;
  if (owner.kind == "ReplicaSet" && group == "apps") return true;
  return other_kinds.contains(owner.kind);
}

bool is_never_freed(const std::string& kind) {
  return kind == "StatefulSet" || kind == "DaemonSet" || kind == "Node" || kind == "DurableJob" ||
         kind == "WorkerPool";
}

const char* to_string(RescueRefusal refusal) {
  switch (refusal) {
    case RescueRefusal::kStaticPod:
      return "StaticPod";
    case RescueRefusal::kNoController:
      return "NoController";
    case RescueRefusal::kOwnerKind:
      return "OwnerKind";
    case RescueRefusal::kVolumes:
      return "Volumes";
    case RescueRefusal::kWindow:
      return "LostAfterSeconds";
  }
  return "";
}

std::string explain(RescueRefusal refusal, const PodOwner& owner) {
  switch (refusal) {
    case RescueRefusal::kStaticPod:
      return "it is a static pod, and only its kubelet can end it";
    case RescueRefusal::kNoController:
      return "it has no controller, so nothing would replace it";
    case RescueRefusal::kOwnerKind:
      return "its controller is a " + owner.kind + ", and pods of this kind are not freed";
    case RescueRefusal::kVolumes:
      return std::string(
                 "it mounts a PersistentVolumeClaim, and its node may still write there; "
                 "the annotation ") +
             kRescueVolumesAnnotation + ": \"true\" allows it";
    case RescueRefusal::kWindow:
      return std::string("its annotation ") + kLostAfterAnnotation +
             " is not a whole number from " + std::to_string(kLeastRescueWindow.count()) + " to " +
             std::to_string(kMostRescueWindow.count());
  }
  return "";
}

RescueDecision decide_rescue(const RescueView& view) {
  const RescuePod& pod = view.pod;
  if (pod.ours) return {};
  if (pod.freed) {
    if (pod.is_going) return {};
    return {RescueAction::kDelete, kDeletionLook};
  }
  if (pod.ended || pod.node.empty()) return {};
  const seconds window = pod.window.value_or(kRescueWindow);
  // A node may get a Lease later.
  if (!view.node.silent_for) return {RescueAction::kWait, window};
  const Duration left = window - std::min(*view.node.silent_for, view.age);
  if (left > Duration::zero()) return {RescueAction::kWait, left};
  // Before a refusal: while all nodes seem silent, nobody needs an Event for each pod.
  if (view.node.in_doubt) return {RescueAction::kHold, kHeldLook};
  if (const auto refusal = refusal_of(view)) return {RescueAction::kRefuse, window, refusal};
  if (view.node.out_of_service) return {RescueAction::kWait, kTaintLook};
  if (view.next_turn > Duration::zero()) return {RescueAction::kTurn, view.next_turn};
  const Duration until_marked = window < kMarkedAfter ? Duration::zero() : left + kMarkWait;
  if (view.node.unmarked && until_marked > Duration::zero()) {
    return {RescueAction::kWait, std::min<Duration>(until_marked, kMarkLook)};
  }
  if (!view.node.looked) return {RescueAction::kLook, std::nullopt};
  return {RescueAction::kFree, kDeletionLook};
}

void RescueAllowance::take_back(SteadyTime then) {
  const auto found = std::find(freed_.begin(), freed_.end(), then);
  if (found != freed_.end()) freed_.erase(found);
}

Duration RescueAllowance::left(int held_shards, int shards, SteadyTime now) {
  while (!freed_.empty() && now - freed_.front() >= kAllowancePeriod) freed_.pop_front();
  const auto share =
      static_cast<std::size_t>(std::max(1, most_ * held_shards / std::max(1, shards)));
  if (freed_.size() < share) return Duration::zero();
  return freed_[freed_.size() - share] + kAllowancePeriod - now;
}

}  // namespace holdfast::reconciler
