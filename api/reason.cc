#include "api/reason.h"

#include <algorithm>
#include <iterator>

namespace holdfast::api {
namespace {

// In the order of the enumeration.
constexpr std::string_view kReasons[] = {
    "AttemptDeadlineExceeded",
    "AwaitsEmptyWorker",
    "BackoffLimitExceeded",
    "Cancelled",
    "Completed",
    "DeadlineExceeded",
    "DeferLimitExceeded",
    "Deferred",
    "DisruptionLimitExceeded",
    "DisruptionTarget",
    "Error",
    "FailedIndexes",
    "Fenced",
    "GuardMissing",
    "HandedBack",
    "HeartbeatAwaited",
    "HolderSilent",
    "LeaseHeld",
    "LeaseNotGranted",
    "LeaseWriteRefused",
    "MaxFailedIndexesExceeded",
    "NoProgress",
    "NoScheduler",
    "NodeGone",
    "NodeSilent",
    "NotKnownToThisVersion",
    "OOMKilled",
    "OldPodNotEnded",
    "OperatorAwaited",
    "OwnerRemoved",
    "ParallelismReduced",
    "Paused",
    "PodCreationQueued",
    "PodCreationRefused",
    "PodCreationUnanswered",
    "PodDeleted",
    "PodDeletionFails",
    "PodFailurePolicy",
    "PodGated",
    "PodGone",
    "PodNameTaken",
    "PodNeverCreated",
    "PodNotCreated",
    "PodRejected",
    "PodRunning",
    "PodStarting",
    "PodStuckTerminating",
    "PodTemplateInvalid",
    "PodTemplateRefused",
    "PodTerminating",
    "PodUnschedulable",
    "PoolMissing",
    "QueueMissing",
    "Queued",
    "RestartsSpread",
    "Resuming",
    "RetryBackoff",
    "RunsStopped",
    "StageStarting",
    "StartTimeout",
    "SuccessPolicy",
    "Suspended",
    "WorkerAwaited",
    "WorkerLost",
    "WorkerOOMKilled",
    "WorkerRunning",
    "WorkerStarting",
    "WorkerStopped",
    "WorkerStopping",
};
static_assert(std::size(kReasons) == static_cast<std::size_t>(Reason::kWorkerStopping) + 1);
static_assert(std::is_sorted(std::begin(kReasons), std::end(kReasons)));

}  // namespace

const char* to_string(Reason reason) { return kReasons[static_cast<std::size_t>(reason)].data(); }

std::optional<Reason> parse_reason(std::string_view text) {
  const auto* const found = std::lower_bound(std::begin(kReasons), std::end(kReasons), text);
  if (found == std::end(kReasons) || *found != text) return std::nullopt;
  return static_cast<Reason>(found - std::begin(kReasons));
}

}  // namespace holdfast::api
