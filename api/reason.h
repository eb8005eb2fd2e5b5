// The reasons of waiting jobs, ended attempts and failed jobs. The same names are in docs/api.md,
// docs/reasons.md and the metrics, and users match on them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::api {

enum class Reason {
  kAttemptDeadlineExceeded,
  kAwaitsEmptyWorker,
  kBackoffLimitExceeded,
  kCancelled,
  kCompleted,
  kDeadlineExceeded,
  kDeferLimitExceeded,
  kDeferred,
  kDisruptionLimitExceeded,
  kDisruptionTarget,
  kError,
  kFailedIndexes,
  kFenced,
  kGuardMissing,
  kHandedBack,
  kHeartbeatAwaited,
  kHolderSilent,
  kLeaseHeld,
  kLeaseNotGranted,
  kLeaseWriteRefused,
  kMaxFailedIndexesExceeded,
  kNoProgress,
  kNoScheduler,
  kNodeGone,
  kNodeSilent,
  kNotKnownToThisVersion,
  kOOMKilled,
  kOldPodNotEnded,
  kOperatorAwaited,
  kOwnerRemoved,
  kParallelismReduced,
  kPaused,
  kPodCreationQueued,
  kPodCreationRefused,
  kPodCreationUnanswered,
  kPodDeleted,
  kPodDeletionFails,
  kPodFailurePolicy,
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
  kPodTemplateRefused,
  kPodTerminating,
  kPodUnschedulable,
  kPoolMissing,
  kQueueMissing,
  kQueued,
  kRestartsSpread,
  kResuming,
  kRetryBackoff,
  kRunsStopped,
  kStageStarting,
  kStartTimeout,
  kSuccessPolicy,
  kSuspended,
  kWorkerAwaited,
  kWorkerLost,
  kWorkerOOMKilled,
  kWorkerRunning,
  kWorkerStarting,
  kWorkerStopped,
  kWorkerStopping,
};
const char* to_string(Reason reason);
std::optional<Reason> parse_reason(std::string_view text);

// One of our reasons, or a word of a kubelet or scheduler ("ImagePullBackOff"). Such words decide
// nothing.
class AnyReason {
 public:
  AnyReason() = default;  // empty
  AnyReason(Reason reason) : own_(reason), text_(to_string(reason)) {}
  // A reason from the API server or from another program.
  explicit AnyReason(std::string text) : own_(parse_reason(text)), text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  bool operator==(Reason reason) const { return own_ == reason; }
  bool operator==(const AnyReason& other) const { return text_ == other.text_; }

 private:
  std::optional<Reason> own_;
  std::string text_;
};

}  // namespace holdfast::api
