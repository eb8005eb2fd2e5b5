#include "plugin/explain/outlook.h"

#include <algorithm>

#include "reconciler/api.h"
#include "reconciler/types.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

bool is_over(const Json& object, const JobText& job) {
  if (job.has_ended() || job.phase == "Cancelling") return true;
  // A job with stages may go on when its outcome is decided.
  if (const StageText* const stage = current_stage(job)) {
    return stage->phase == "Succeeded" || stage->phase == "Failed" || stage->phase == "Skipped";
  }
  return holds(object, "FailureTarget") || holds(object, "SuccessCriteriaMet");
}

bool is_out_of_time(const Json& object, const JobText& job, Time now) {
  if (job.phase != "Running" && job.phase != "Backoff") return false;
  // The clock may stand still while gates hold the pod back, and does while the job waits for a
  // permit of its queue.
  const auto& still = {"PodGated", "Queued", "QueueMissing"};
  if (job.waiting && std::find(still.begin(), still.end(), job.waiting->reason) != still.end()) {
    return false;
  }
  const auto deadline = first_deadline(object, job);
  if (!deadline) return false;
  if (*deadline <= now) return true;
  // Of many runs others may start before.
  return !job.runs.empty() && !job.many_runs() &&
         std::all_of(job.runs.begin(), job.runs.end(), [&](const RunText& run) {
           return run.next_attempt && *run.next_attempt >= *deadline;
         });
}

}  // namespace

Outlook outlook_of(const Json& object, const JobText& job, Time now) {
  if (is_over(object, job)) return Outlook::kStopped;
  const Json& spec = at(object, "spec");
  const StageText* const stage = current_stage(job);
  const bool is_cancelled = bool_at(spec, "cancel");
  if (is_cancelled && !(stage && stage->always)) return Outlook::kToBeCancelled;
  if (bool_at(spec, "suspend") && !is_cancelled) {
    return job.phase == "Suspended" ? Outlook::kSuspended : Outlook::kToBeSuspended;
  }
  if (job.phase == "Suspended" && job.waiting && job.waiting->reason == "Suspended") {
    return Outlook::kToBeResumed;
  }
  return is_out_of_time(object, job, now) ? Outlook::kOutOfTime : Outlook::kNextAttempt;
}

std::vector<ActiveDeadline> active_deadlines(const Json& object, const JobText& job) {
  std::vector<ActiveDeadline> deadlines;
  const auto add = [&](const char* name, auto limit, const auto& since, std::int64_t suspended) {
    if (!limit || !since) return;
    const seconds paused{std::clamp<std::int64_t>(suspended, 0, 2'147'483'647)};
    deadlines.push_back({name, *since + *limit + paused});
  };
  const StageText* const stage = current_stage(job);
  const bool is_always = stage && stage->always;
  if (stage && stage != &job.stages.front()) {
    auto own_time = seconds_in(job.spec, "activeDeadlineSeconds");
    if (!own_time && is_always) own_time = reconciler::kAlwaysDeadline;
    add("stage deadline", own_time, stage->start, stage->suspended);
  }
  // The job's own does not count for Always stages.
  if (is_always) return deadlines;
  add("active deadline", seconds_in(at(object, "spec"), "activeDeadlineSeconds"), job.started,
      int_at(at(object, "status"), "suspendedSeconds"));
  return deadlines;
}

std::optional<Time> first_deadline(const Json& object, const JobText& job) {
  std::optional<Time> first;
  for (const ActiveDeadline& one : active_deadlines(object, job)) {
    if (!first || one.at < *first) first = one.at;
  }
  return first;
}

std::optional<seconds> seconds_in(const Json& object, std::string_view key) {
  const std::int64_t value = int_at(object, key);
  // The schema allows 31 bits.
  if (value <= 0 || value > 2'147'483'647) return std::nullopt;
  return seconds(value);
}

const StageText* current_stage(const JobText& job) {
  const auto stage = std::find_if(job.stages.begin(), job.stages.end(),
                                  [&](const StageText& one) { return one.name == job.stage; });
  return stage == job.stages.end() ? nullptr : &*stage;
}

}  // namespace holdfast::plugin
