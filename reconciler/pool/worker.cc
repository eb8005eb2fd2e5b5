#include "reconciler/pool/worker.h"

#include <algorithm>
#include <utility>

#include "reconciler/names.h"

namespace holdfast::reconciler {
namespace {

// In place of the seq that is awaited, while the agent ignores its work Lease.
constexpr std::int64_t kNever = -1;
// In marks: the agent ignores the work Lease with this UID.
constexpr std::uint64_t kAstray = std::uint64_t{1} << 63;
// While a verdict is held back, or the others' state decides.
constexpr std::chrono::seconds kLookAgain{1};

WorkerDecision ends(WorkerStep step, const char* reason, std::string message) {
  WorkerDecision decision;
  decision.step = step;
  decision.reason = reason;
  decision.message = std::move(message);
  return decision;
}

WorkerDecision only(WorkerStep step) {
  WorkerDecision decision;
  decision.step = step;
  return decision;
}

std::string in_seconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

// Its process cannot begin anything before it has renewed the worker Lease, and the cut-off's
// compare-and-swap sees a renewal.
WorkerDecision without_lease(const WorkerFacts& worker) {
  if (worker.pod == PodIs::kThere && worker.has_pool) {
    return only(worker.has_work ? WorkerStep::kMakeRevokedLease : WorkerStep::kMakeLease);
  }
  const bool is_left_over = worker.has_work && worker.pod == PodIs::kGone;
  return only(is_left_over && !worker.is_needed ? WorkerStep::kForget : WorkerStep::kNone);
}

WorkerDecision dead(const WorkerFacts& worker) {
  if (worker.out_of_memory) {
    return ends(WorkerStep::kCutOff, kOutOfMemory,
                "it ran out of memory, and the kernel killed it");
  }
  return ends(WorkerStep::kCutOff, "PodEnded", "its agent has ended");
}

WorkerDecision revoked(const WorkerFacts& worker) {
  if (worker.pod == PodIs::kDead) return dead(worker);
  const Duration left = worker.duration - worker.silent_for;
  if (left <= Duration::zero()) {
    return ends(WorkerStep::kCutOff, "Revoked",
                "it was revoked, and has not renewed its Lease for " + in_seconds(worker.duration));
  }
  WorkerDecision decision;
  decision.wake_after = left;
  return decision;
}

// The agent renews every third of the duration.
Duration quiet_after(const WorkerFacts& worker) { return worker.duration * 2 / 3; }

WorkerDecision serving(const WorkerFacts& worker) {
  const Duration limit = worker.held_back ? 2 * worker.duration : worker.duration;
  if (worker.silent_for >= limit) {
    return ends(WorkerStep::kCutOff, "Silent",
                "it has not renewed its Lease for " + in_seconds(worker.duration));
  }
  // At its last renewal: a worker that has died does not catch up either.
  if (worker.lags_for - worker.silent_for >= worker.duration) {
    return ends(
        WorkerStep::kRevoke, "EchoLags",
        "it renews its Lease, but has not read its work for " + in_seconds(worker.duration));
  }
  WorkerDecision decision;
  const bool is_quiet = worker.silent_for >= quiet_after(worker);
  decision.takes = !is_quiet && worker.has_work;
  Duration next = (is_quiet ? limit : quiet_after(worker)) - worker.silent_for;
  if (worker.lags_for > Duration::zero()) {
    next = std::min(next, std::max<Duration>(worker.duration - worker.lags_for, kLookAgain));
  }
  decision.wake_after = next > Duration::zero() ? next : Duration(kLookAgain);
  return decision;
}

WorkerDecision live(const WorkerFacts& worker) {
  if (worker.pod == PodIs::kDead) return dead(worker);
  // A pod that was deleted by force, or was failed from outside, may still have processes.
  if (worker.pod == PodIs::kGone || worker.pod == PodIs::kDoubted) {
    const WorkerStep step = worker.renewed ? WorkerStep::kRevoke : WorkerStep::kCutOff;
    return ends(step, "PodGone", "its pod is gone");
  }
  // Without a work Lease a marked worker falls silent by itself.
  if (!worker.has_work && !worker.is_marked && worker.pod == PodIs::kThere && worker.has_pool) {
    return only(WorkerStep::kMakeWork);
  }
  return worker.renewed ? serving(worker) : WorkerDecision();
}

}  // namespace

EchoLag::Is EchoLag::seen(const std::string& work_uid, std::int64_t seq,
                          const WorkerReport& report) {
  const bool is_own = !work_uid.empty() && report.work_uid == work_uid;
  const bool is_reached = is_own && awaited_ != kNever && report.seq >= awaited_;
  const bool is_other = !lags_ || is_reached;
  lags_ = !is_own || report.seq != seq;
  astray_ = !is_own || report.seq > seq;
  echoed_ = report.seq;
  work_mark_ = kAstray | hash64(work_uid);
  if (!lags_) return Is::kNone;
  if (is_other || awaited_ == kNever) awaited_ = astray_ ? kNever : seq;
  return is_other ? Is::kOther : Is::kSame;
}

std::uint64_t EchoLag::mark() const {
  return astray_ ? work_mark_ : static_cast<std::uint64_t>(awaited_);
}

bool EchoLag::is_of(std::uint64_t mark) const {
  if (!lags_) return false;
  if (astray_ || mark >= kAstray) return astray_ && mark == work_mark_;
  return mark > static_cast<std::uint64_t>(std::max<std::int64_t>(echoed_, 0));
}

bool EchoLag::take_over(std::uint64_t mark) {
  if (!is_of(mark)) return false;
  if (!astray_) awaited_ = std::min(awaited_, static_cast<std::int64_t>(mark));
  return true;
}

WorkerDecision decide_worker(const WorkerFacts& worker) {
  if (!worker.has_lease) return without_lease(worker);
  if (!worker.is_ours) {
    return ends(WorkerStep::kRevoke, "LeaseChanged", "somebody has changed its Lease");
  }
  switch (worker.is) {
    case WorkerIs::kLive:
      return live(worker);
    case WorkerIs::kRevoked:
      return revoked(worker);
    case WorkerIs::kCutOff:
      break;
  }
  // As long as the pod is there, they show whether it has served.
  const bool is_over = worker.pod == PodIs::kGone && !worker.is_needed;
  return only(is_over ? WorkerStep::kForget : WorkerStep::kNone);
}

}  // namespace holdfast::reconciler
