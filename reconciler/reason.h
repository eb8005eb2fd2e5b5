// Why a job waits, an attempt ended or a job failed; and what an attempt was recovered from. The
// names are those of docs/api.md, docs/troubleshooting.md and the metrics: users match on them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::reconciler {

enum class Reason {
  kAttemptDeadlineExceeded,
  kBackoffLimitExceeded,
  kCancelled,
  kCompleted,
  kDeadlineExceeded,
  kDisruptionLimitExceeded,
  kDisruptionTarget,
  kError,
  kFenced,
  kHeartbeatAwaited,
  kHolderSilent,
  kLeaseHeld,
  kLeaseNotGranted,
  kLeaseWriteRefused,
  kNoProgress,
  kNoScheduler,
  kNodeGone,
  kNodeSilent,
  kOldPodNotEnded,
  kOperatorAwaited,
  kOwnerRemoved,
  kPodCreationQueued,
  kPodCreationRefused,
  kPodDeleted,
  kPodGated,
  kPodGone,
  kPodNameTaken,
  kPodNeverCreated,
  kPodNotCreated,
  kPodRejected,
  kPodRunning,
  kPodStarting,
  kPodStuckTerminating,
  kPodTemplateInvalid,
  kPodTerminating,
  kPodUnschedulable,
  kRestartsSpread,
  kResuming,
  kRetryBackoff,
  kStartTimeout,
  kSuspended,
};
const char* to_string(Reason reason);
std::optional<Reason> parse_reason(std::string_view text);

// A reason of ours, or a word of a kubelet or scheduler ("ImagePullBackOff"), which decides
// nothing.
class AnyReason {
 public:
  AnyReason() = default;  // empty
  AnyReason(Reason reason) : own_(reason), text_(to_string(reason)) {}
  // What the API server has, or what somebody else says.
  explicit AnyReason(std::string text) : own_(parse_reason(text)), text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool operator==(Reason reason) const { return own_ == reason; }
  bool operator==(const AnyReason& other) const { return text_ == other.text_; }

 private:
  std::optional<Reason> own_;
  std::string text_;
};

// What a lost, hung or overlong attempt was recovered from: the class of the recovery histogram, as
// in docs/concepts.md. kNone: the pod reported its end itself.
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
