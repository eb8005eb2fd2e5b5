#include "plugin/base/rank.h"

#include <algorithm>
#include <array>

#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::Reason;

bool is_usual(const std::string& reason) {
  constexpr std::array kUsual = {Reason::kPodRunning,    Reason::kPodStarting,
                                 Reason::kWorkerRunning, Reason::kWorkerStarting,
                                 Reason::kStageStarting, Reason::kResuming};
  const auto own = reconciler::parse_reason(reason);
  return own && std::find(kUsual.begin(), kUsual.end(), *own) != kUsual.end();
}

}  // namespace

bool awaits_administrator(const std::string& reason) {
  return reconciler::parse_reason(reason) == Reason::kGuardMissing;
}

Rank rank_of(const RankOf& job, Time now) {
  if (job.phase == "Failed") return Rank::kFailed;
  if (job.phase == "Cancelled") return Rank::kCancelled;
  if (job.phase == "Succeeded") return Rank::kSucceeded;
  if (job.stalled || awaits_administrator(job.waiting)) return Rank::kStalled;
  if (job.deadline && now - *job.deadline > kGrace) return Rank::kLate;
  if (job.phase == "Backoff") return Rank::kBackoff;
  if (job.phase == "Cancelling") return Rank::kCancelling;
  if (job.phase == "Suspended") return Rank::kSuspended;
  if (job.phase != "Running") return Rank::kPending;
  return !job.waiting.empty() && !is_usual(job.waiting) ? Rank::kTrouble : Rank::kRunning;
}

}  // namespace holdfast::plugin
