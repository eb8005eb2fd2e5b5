// The ledger's rules on time that is nobody's fault, and on what belongs to others.
#include "tests/simulation/ledger.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using std::chrono::seconds;

// Clocks that differ by more than the operator allows for may mislead one who saw nothing himself.
constexpr seconds kClockSkew{30};

}  // namespace

// `pod`: in truth, the ended attempt's.
void Ledger::check_times(const StatusWrite& write, const HistoryEntry& entry,
                         const std::string& pod_uid, const PodBook& pod) {
  const std::string what = write.name + ", attempt " + std::to_string(entry.attempt);
  if (entry.outcome == Outcome::kStartTimeout) check_start_timeout(write, pod);
  const bool job_is_out_of_time =
      entry.outcome == Outcome::kDeadlineExceeded && entry.reason == Reason::kDeadlineExceeded;
  if (job_is_out_of_time && pod.gated) {
    complain("a job's time runs out while its pod is gated: " + what);
  }
  const auto truth = cluster_.truth(pod_uid);
  if (!truth) return;
  if (entry.outcome == Outcome::kFailed && truth->stopped &&
      std::chrono::abs(truth->skew) < kClockSkew) {
    complain("S8 Budget: a deletion is counted as a failure: " + what);
  }
  if (entry.reason != Reason::kAttemptDeadlineExceeded || truth->started == Time{}) return;
  // A kubelet starts a pod that a restore brings back once more. The data tell of its first start.
  if (pod.created < restored_at_) return;
  const Duration ran = wall() - (scheduler_.now() - current_->sent) - truth->started;
  // A slow clock tells a start that nobody saw as that much earlier.
  const Duration tolerance = kClockTolerance + std::max(-truth->skew, Duration::zero());
  if (ran + tolerance < *write.spec.attempt_deadline) {
    complain("an attempt is ended " + human_duration(ran) + " after its start: " + what);
  }
}

// What is not bound waits without limit, unless the user has set one.
void Ledger::check_start_timeout(const StatusWrite& write, const PodBook& pod) {
  const Time decided = wall() - (scheduler_.now() - current_->sent) + kClockTolerance;
  const auto& limit = write.spec.schedule_deadline;
  if (limit && decided - pod.created_at >= *limit) return;
  if (pod.bound_at != Time{} && decided - pod.bound_at >= write.spec.start_deadline) return;
  complain("an attempt is ended as StartTimeout before its time: " + write.name);
}

// A manager whose field a write takes over by leaving it out cannot remove it any more.
void Ledger::check_shared_metadata(const StatusWrite& write) {
  if (!current_) return;
  const Json body = Json::parse(current_->request.body, nullptr, false);
  if (!body.is_object()) return;
  for (const char* key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (at(at(body, "metadata"), key) == at(at(write.before, "metadata"), key)) continue;
    complain(std::string("a status write leaves out the ") + key + " of " + write.name);
  }
}

}  // namespace holdfast::simulation
