// What is done about another controller's pod whose node has fallen silent (docs/rescue.md). Pure.
//
//   const RescueDecision decision = decide_rescue(view);
//
// The pod's status records that it was freed: its condition DisruptionTarget has kFreedReason. From
// then on every replica deletes it, whatever its node does.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "core/time.h"

namespace holdfast::reconciler {

// Set by users on pods.
inline constexpr const char* kRescueLabel = "holdfast.dev/rescue";
inline constexpr const char* kRescueSelector = "holdfast.dev/rescue=true";
inline constexpr const char* kLostAfterAnnotation = "holdfast.dev/lostAfterSeconds";
inline constexpr const char* kRescueVolumesAnnotation = "holdfast.dev/rescueVolumes";

inline constexpr const char* kFreedCondition = "DisruptionTarget";
inline constexpr const char* kFreedReason = "HoldfastNodeSilent";

inline constexpr std::chrono::seconds kRescueWindow{60};
inline constexpr std::chrono::seconds kLeastRescueWindow{15};
inline constexpr std::chrono::seconds kMostRescueWindow{86'400};

// Kubernetes marks a silent node after 50 to 60 s (--node-monitor-grace-period, since 1.32). Until
// then the scheduler may put the next pod there again. So a pod with a window of kMarkedAfter or more
// is freed once its node is marked, but at most kMarkWait after its window.
inline constexpr std::chrono::seconds kMarkedAfter{50};
inline constexpr std::chrono::seconds kMarkWait{10};
// How often to see whether it is.
inline constexpr std::chrono::seconds kMarkLook{1};

// A deletion that no watch has shown after this time is asked for again.
inline constexpr std::chrono::seconds kDeletionLook{5};

// The annotation's text as a window; the default if it is empty. None: it is no number of seconds
// from kLeastRescueWindow to kMostRescueWindow.
std::optional<std::chrono::seconds> rescue_window(const std::string& annotation);

// The controller of a pod.
struct PodOwner {
  std::string api_version;
  std::string kind;  // empty: no controller
  std::string name;
  std::string uid;
};
// Pods of this controller may be freed: a batch Job, a ReplicaSet, or one of these other kinds.
bool may_be_freed(const PodOwner& owner, const std::set<std::string>& other_kinds);
// Pods of such a kind are never freed: a successor has the same identity, or the kubelet is the
// owner.
bool is_never_freed(const std::string& kind);

enum class RescueRefusal {
  kStaticPod,
  kNoController,
  kOwnerKind,
  kVolumes,
  kWindow,
};
inline constexpr std::size_t kRescueRefusals = 5;
// A word, for metrics.
const char* to_string(RescueRefusal refusal);
// A sentence, for humans.
std::string explain(RescueRefusal refusal, const PodOwner& owner);

struct RescuePod {
  PodOwner owner;
  std::string node;           // empty: it has none
  bool ended = false;         // its phase is final
  bool freed = false;         // its status says so
  bool is_going = false;      // it is deleted without grace, so nothing is left to ask for
  bool ours = false;          // it has our finalizer
  bool is_static = false;     // its kubelet made it
  bool has_claims = false;    // it mounts persistent volumes
  bool frees_claims = false;  // its annotation allows that
  std::optional<std::chrono::seconds> window = kRescueWindow;  // see rescue_window()
};

struct RescueNode {
  // Since the last change of its Lease, in live time. None: no Lease, or nothing known.
  std::optional<Duration> silent_for;
  // Most others are silent too (RecordTracker::in_doubt()).
  bool in_doubt = false;
  // The node and then its Lease were just read live. The rest is true up to that read.
  bool looked = false;
  bool out_of_service = false;  // it has the taint, so Kubernetes frees its pods
  // Less than kMarkLook ago the scheduler could still take the node for new pods.
  bool unmarked = false;
};

struct RescueView {
  RescuePod pod;
  // Since its creation. Until Kubernetes marks a silent node, the scheduler may put a pod there
  // again and again. So each pod gets a window of its own.
  Duration age{0};
  RescueNode node;
  bool owner_may_be_freed = false;
  Duration next_turn{0};  // until RescueAllowance lets one go
};

enum class RescueAction {
  kNone,    // never, or not before the pod changes
  kWait,    // the node's silence does not count yet, or Kubernetes has not marked the node yet
  kHold,    // it counts, but the path to the nodes is in doubt
  kTurn,    // too many were freed within the last minute
  kRefuse,  // it counts, but this pod is not freed
  kLook,    // read the node and its Lease live, and decide again
  kFree,    // write the pod's status
  kDelete,  // the status is written
};

struct RescueDecision {
  RescueAction action = RescueAction::kNone;
  std::optional<Duration> look_in;         // decide again after this time
  std::optional<RescueRefusal> refusal{};  // kRefuse
};

RescueDecision decide_rescue(const RescueView& view);

// How many pods a replica may free in any minute: its share of the installation's limit, by its
// part of the shards, and at least one. A new process begins a new minute.
class RescueAllowance {
 public:
  explicit RescueAllowance(int most) : most_(most) {}

  // The time until the next one may be freed; zero: now.
  Duration left(int held_shards, int shards, SteadyTime now);
  void freed(SteadyTime now) { freed_.push_back(now); }
  // The one that was counted then was not freed after all.
  void take_back(SteadyTime then);

 private:
  const int most_;
  std::deque<SteadyTime> freed_;  // within the last minute
};

}  // namespace holdfast::reconciler
