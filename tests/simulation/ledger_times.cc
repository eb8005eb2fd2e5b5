// The ledger's rules on time that is nobody's fault, on what was lost, and on what belongs to
// others.
#include <algorithm>

#include "reconciler/job/edges.h"
#include "reconciler/staleness.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using std::chrono::seconds;

// Clocks that differ by more than the operator allows for may mislead one who saw nothing himself.
constexpr seconds kClockSkew{30};
// From a live look at a node to the write of the verdict, at the most: its answer, two more reads.
constexpr seconds kLookTime{2};

// The time of its job, or of its stage, stops the attempt. Every other end of a job is on record
// with the first run that it stops.
bool stopped_by_time(const reconciler::Status& old, const reconciler::Status& next,
                     const HistoryEntry& entry) {
  const Condition* const failure = next.condition("FailureTarget");
  const bool is_late = failure && failure->status && failure->reason == "DeadlineExceeded";
  return entry.reason == Reason::kRunsStopped && !recorded_end(old) &&
         (is_late || !recorded_end(next));
}

}  // namespace

// `pod`: in truth, the ended attempt's.
void Ledger::check_times(const StatusWrite& write, const HistoryEntry& entry,
                         const std::string& pod_uid, const PodBook& pod) {
  const std::string what = write.name + ", attempt " + std::to_string(entry.attempt);
  if (entry.outcome == Outcome::kStartTimeout) {
    check_start_timeout(write, pod);
    check_taken_back(write, entry, pod);
  }
  if (stopped_by_time(write.old, write.next, entry) && pod.gated && all_gated(write)) {
    complain("a job's time runs out while its pod is gated: " + what);
  }
  const auto truth = cluster_.truth(pod_uid);
  if (!truth) return;
  if (entry.outcome == Outcome::kFailed && truth->stopped &&
      std::chrono::abs(truth->skew) < kClockSkew) {
    complain("S8 Budget: a deletion is counted as a failure: " + what);
  }
  if (entry.reason != Reason::kAttemptDeadlineExceeded || truth->started == Time{}) return;
  // A kubelet starts a pod that a restore brings back once more. The data record its first start.
  if (pod.created < restored_at_) return;
  const Duration ran = wall() - (scheduler_.now() - current_->sent) - truth->started;
  // A slow clock reports a start that nobody saw as that much earlier.
  const Duration tolerance = kClockTolerance + std::max(-truth->skew, Duration::zero());
  if (ran + tolerance < *write.spec.attempt_deadline) {
    complain("an attempt is ended " + human_duration(ran) + " after its start: " + what);
  }
}

// The clock of a job with many runs stands still only while the pod of each open run is gated. It
// goes on for a run that has no pod, because the API server may refuse the pod for ever.
bool Ledger::all_gated(const StatusWrite& write) const {
  const auto is_gated = [&](const Run& run) {
    return std::any_of(pods_.begin(), pods_.end(), [&](const auto& one) {
      const PodBook& pod = one.second;
      const bool lives = pod.made && !is_final(pod.phase) && pod.removed == Duration::zero();
      return pod.owner_uid == write.uid && pod.attempt == run.attempt && lives && pod.gated;
    });
  };
  const auto& runs = write.old.runs;
  return std::all_of(runs.begin(), runs.end(),
                     [&](const Run& run) { return !run.open() || is_gated(run); });
}

// What is not bound waits without limit, unless the user has set one.
void Ledger::check_start_timeout(const StatusWrite& write, const PodBook& pod) {
  const Time decided = wall() - (scheduler_.now() - current_->sent) + kClockTolerance;
  const auto& limit = write.spec.schedule_deadline;
  if (limit && decided - pod.created_at >= *limit) return;
  if (pod.bound_at != Time{} && decided - pod.bound_at >= write.spec.start_deadline) return;
  complain("an attempt is ended as StartTimeout before its time: " + write.name);
}

// A kubelet may take back that a pod runs. What is on record has started, and from then on only the
// time counts in which its kubelet says otherwise.
void Ledger::check_taken_back(const StatusWrite& write, const HistoryEntry& entry,
                              const PodBook& pod) {
  const auto run = std::find_if(write.old.runs.begin(), write.old.runs.end(),
                                [&](const Run& one) { return one.index == entry.index; });
  const bool is_on_record = run != write.old.runs.end() && run->attempt == entry.attempt &&
                            run->start_time &&
                            std::chrono::floor<seconds>(*run->start_time) == *run->start_time;
  if (!is_on_record || pod.ran_until == Time{}) return;
  const Time decided = wall() - (scheduler_.now() - current_->sent) + kClockTolerance;
  if (decided - pod.ran_until < write.spec.start_deadline) {
    complain("an attempt that ran ends as one that never started: " + write.name);
  }
}

// An attempt may be called lost only when, in truth, its node did not show life for the whole
// window, and could have for at least the first look of it (what came before may be an earlier
// life's).
void Ledger::check_loss(const StatusWrite& write, const HistoryEntry& entry) {
  if (entry.reason != Reason::kNodeSilent) return;
  const Cluster::Node* const node = cluster_.node(entry.node_name);
  if (!node) return complain("an attempt is lost on node " + entry.node_name + ", which never was");
  const auto window = Duration(write.spec.lost_after) / fastest_rate() * 1'000'000;
  // As of when it was decided: the request may have been under way for long.
  const Duration decided = current_ ? current_->sent : scheduler_.now();
  const std::vector<Duration>& renewals = node_renewals_[entry.node_name];
  // What the node renews after the live look, nobody knows: other reads and the way come after it.
  const auto next = std::upper_bound(renewals.begin(), renewals.end(), decided - kLookTime);
  const Duration renewed = next == renewals.begin() ? Duration::zero() : *std::prev(next);
  const Duration trouble_end = gateway_.last_trouble_end();
  const Duration first_look =
      std::min(window, Duration(reconciler::kFirstLook) / rate() * 1'000'000);
  if (decided < trouble_end) return;
  if (decided - renewed + seconds(1) < window || decided - trouble_end + seconds(1) < first_look) {
    complain("an attempt is falsely lost: " + entry.node_name + " renewed its Lease " +
             human_duration(decided - renewed) + " ago, the API server could not be written to " +
             "until " + human_duration(decided - trouble_end) + " ago, of " +
             human_duration(write.spec.lost_after) + ": " + write.name);
  }
}

// No agent is called silent that has renewed within its Lease's duration, and no worker hung that
// has made progress within its deadline.
void Ledger::check_heartbeat(const StatusWrite& write, const HistoryEntry& entry,
                             const std::string& pod_uid) {
  const auto truth = cluster_.truth(pod_uid);
  if (!truth || !write.spec.heartbeat) return;
  const Duration decided = current_ ? current_->sent : scheduler_.now();
  const auto own = [&](Duration window) {
    return window / fastest_rate() * 1'000'000 - seconds(1);
  };
  if (entry.reason == Reason::kHolderSilent) {
    const auto next =
        std::upper_bound(truth->renewals.begin(), truth->renewals.end(), decided - kLookTime);
    const Duration renewed = next == truth->renewals.begin() ? Duration::zero() : *std::prev(next);
    if (decided - renewed < own(write.spec.heartbeat->lease_duration)) {
      complain("an attempt is falsely lost: its agent renewed its Lease " +
               human_duration(decided - renewed) + " ago: " + write.name);
    }
  }
  if (entry.reason == Reason::kNoProgress &&
      (!truth->hangs_since ||
       decided - *truth->hangs_since < own(*write.spec.heartbeat->progress_deadline))) {
    complain("an attempt is falsely called hung: " + write.name);
  }
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
