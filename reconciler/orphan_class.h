// The classes of recoveries, as the metrics and docs/reasons.md name them.
#pragma once

namespace holdfast::reconciler {

// Why an attempt was lost, hung or overlong, and so was recovered. It is the class in the recovery
// histogram (docs/bounds.md). kNone: the pod itself reported its end.
enum class OrphanClass {
  kNone,
  kIntentWithoutPod,
  kPodNeverStarted,
  kPodVanished,
  kPodDisrupted,
  kNodeGone,
  kNodeSilent,
  kPodStuckTerminating,
  kHolderSilent,
  kHolderHung,
  kAttemptTooLong,
  kCancelDeadWorker,
};
inline constexpr OrphanClass kLastOrphanClass = OrphanClass::kCancelDeadWorker;
const char* to_string(OrphanClass orphan_class);  // "" for kNone

}  // namespace holdfast::reconciler
