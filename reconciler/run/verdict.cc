#include "reconciler/run/verdict.h"

#include <algorithm>

#include "core/agent_protocol.h"
#include "core/utf8.h"

namespace holdfast::reconciler {
namespace {

// How much the clocks of a node and of the API server may differ.
constexpr seconds kClockSkew{30};
// The kubelet's own word for an end that it did not see.
constexpr const char* kUnseenEnd = "ContainerStatusUnknown";

// The container that made the pod fail: the first regular container that ended badly, else the
// first such init container. Sidecars do not count, because the kubelet stops them.
const ContainerView* culprit(const PodView& pod) {
  const ContainerView* found = nullptr;
  for (const bool init : {false, true}) {
    for (const ContainerView& container : pod.containers) {
      if (container.init != init || container.sidecar || !container.terminated) continue;
      if (container.terminated->exit_code == 0) continue;
      const auto& finished = container.terminated->finished;
      if (!found ||
          (finished && found->terminated->finished && *finished < *found->terminated->finished)) {
        found = &container;
      }
    }
    if (found) return found;
  }
  return nullptr;
}

std::optional<Time> last_finish(const PodView& pod) {
  std::optional<Time> last;
  for (const ContainerView& container : pod.containers) {
    if (container.sidecar || container.init || !container.terminated) continue;
    const auto& finished = container.terminated->finished;
    if (finished && (!last || *finished > *last)) last = finished;
  }
  return last;
}

// The deletion of an ended pod may not be the first one. A later deletion has grace 0 (the
// kubelet's), or 1 s, the shortest grace of a running pod.
bool hides_the_first(const PodView& pod) { return pod.ended() && pod.deletion_grace <= seconds(1); }

bool lost_by_deletion(const PodView& pod, const ContainerView* container, EndOrder order) {
  if (!pod.deletion || order == EndOrder::kFailedFirst) return false;
  if (order == EndOrder::kDeletedFirst) return true;
  if (!container || !container->terminated->finished) return true;
  const Terminated& terminated = *container->terminated;
  const Time asked = std::chrono::floor<seconds>(*pod.deletion - pod.deletion_grace);
  const Time finished = std::chrono::floor<seconds>(*terminated.finished);
  if (finished > asked) return true;
  // Only the container's end is known, unless the kubelet gives a reason.
  const bool stopped = (terminated.exit_code == kSigkillExit && !terminated.out_of_memory) ||
                       terminated.exit_code == kSigtermExit;
  return stopped && !pod.out_of_time && (asked - finished <= kClockSkew || hides_the_first(pod));
}

AnyReason said_or(const std::string& said, Reason ours) {
  return said.empty() ? AnyReason(ours) : AnyReason(said);
}

Verdict lost(const PodView& pod, AnyReason reason, const std::string& message, OrphanClass cls) {
  Verdict verdict;
  verdict.outcome = Outcome::kLost;
  verdict.reason = std::move(reason);
  verdict.message = message.empty() ? pod.message : message;
  verdict.orphan_class = cls;
  return verdict;
}

std::string how_it_ended(const ContainerView& container) {
  return (container.init ? "init container " : "container ") + container.name +
         " ended with exit code " + std::to_string(container.terminated->exit_code);
}

Verdict judge_failed_pod(const PodView& pod, EndOrder order, bool has_run) {
  const ContainerView* const container = culprit(pod);
  Verdict verdict;
  if (pod.disruption_target) {
    verdict = lost(pod, said_or(pod.disruption_reason, Reason::kDisruptionTarget), "",
                   OrphanClass::kPodDisrupted);
  } else if (!pod.started() && has_run && !pod.out_of_time) {
    verdict = lost(pod, AnyReason(pod.reason.empty() ? kUnseenEnd : pod.reason),
                   pod.message.empty()
                       ? "the kubelet tells of no container any more, and did not see how it ended"
                       : "",
                   OrphanClass::kPodDisrupted);
  } else if (!pod.started() && !has_run) {
    verdict = lost(pod, said_or(pod.reason, Reason::kPodRejected),
                   pod.message.empty() ? "no container of the pod ever started" : "",
                   OrphanClass::kPodDisrupted);
  } else if (lost_by_deletion(pod, container, order)) {
    verdict = lost(pod, Reason::kPodDeleted, "the pod was deleted while it ran",
                   OrphanClass::kPodVanished);
  } else if (container && fenced_itself(*container)) {
    verdict =
        lost(pod, Reason::kFenced, container->terminated->message, OrphanClass::kHolderSilent);
  } else if (container && !container->terminated->was_seen) {
    verdict = lost(pod, AnyReason(container->terminated->reason),
                   "the kubelet did not see how the container ended", OrphanClass::kPodDisrupted);
  } else {
    verdict.outcome = Outcome::kFailed;
    verdict.reason =
        said_or(pod.reason.empty() && container ? container->terminated->reason : pod.reason,
                Reason::kError);
    verdict.message = pod.message;
  }
  if (container) {
    verdict.exit_code = container->terminated->exit_code;
    verdict.ended = container->terminated->finished;
    if (verdict.message.empty()) verdict.message = how_it_ended(*container);
    if (!fenced_itself(*container)) verdict.output = container->terminated->message;
  }
  return verdict;
}

}  // namespace

Verdict verdict_of(Outcome outcome, Reason reason, std::string message, OrphanClass orphan_class) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.reason = reason;
  verdict.message = std::move(message);
  verdict.orphan_class = orphan_class;
  return verdict;
}

std::string in_one_line(const Verdict& verdict) {
  // An Event takes 1 KiB.
  constexpr std::size_t kSaid = 512;
  const std::string said = clean_text(last_lines(verdict.output, kSaid), kSaid);
  return said.empty() ? verdict.message : verdict.message + ": " + said;
}

bool fenced_itself(const ContainerView& container) {
  return container.worker && container.terminated &&
         container.terminated->exit_code == kFencedExitCode &&
         container.terminated->message.starts_with(kFencedMark);
}

bool has_failed(const PodView& pod) { return pod.phase == PodPhase::kFailed || culprit(pod); }

Verdict judge_ended_pod(const PodView& pod, EndOrder order, bool has_run) {
  if (pod.phase == PodPhase::kFailed) return judge_failed_pod(pod, order, has_run);
  Verdict verdict;
  verdict.outcome = Outcome::kSucceeded;
  verdict.reason = Reason::kCompleted;
  verdict.exit_code = 0;
  verdict.ended = last_finish(pod);
  return verdict;
}

std::optional<Verdict> judge_fenced_worker(const PodView& pod) {
  for (const ContainerView& container : pod.containers) {
    if (!ended_for_good(pod, container) || !fenced_itself(container)) continue;
    Verdict verdict =
        lost(pod, Reason::kFenced, container.terminated->message, OrphanClass::kHolderSilent);
    verdict.exit_code = container.terminated->exit_code;
    verdict.ended = container.terminated->finished;
    return verdict;
  }
  return std::nullopt;
}

}  // namespace holdfast::reconciler
