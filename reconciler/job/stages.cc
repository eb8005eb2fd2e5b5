#include "reconciler/job/stages.h"

#include <algorithm>
#include <vector>

#include "reconciler/job/conditions.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/opening.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/reporting.h"
#include "reconciler/job/status_limits.h"

namespace holdfast::reconciler {
namespace {

StageStatus& current(Status& status) { return status.stages[status.stage]; }

// The stages without which the job has no result.
bool is_needed(const Stage& stage) { return !stage.may_fail && !stage.always; }

bool result_is_ready(const Job& job, const Status& status) {
  for (std::size_t position = 0; position < job.stages.size(); ++position) {
    if (is_needed(job.stages[position]) &&
        status.stages[position].phase != StagePhase::kSucceeded) {
      return false;
    }
  }
  return true;
}

void decide_failure(const Context& context, const std::string& reason, const std::string& message,
                    WriteStatus& write) {
  set_condition(write.status, "FailureTarget", true, reason, message, context.now);
  // For those who wait for the result.
  set_condition(write.status, "ResultReady", false, reason, message, context.now);
  write.events.push_back(Event{true, reason, "Finish", message});
}

void decide_success(const Context& context, Status& status) {
  const std::string message = "all stages that the result needs have succeeded";
  set_condition(status, "SuccessCriteriaMet", true, "StagesSucceeded", message, context.now);
  set_condition(status, "ResultReady", true, "StagesSucceeded", message, context.now);
}

// Something of the job has failed or was left out, and the job goes on or has its result.
void report_partial(const Context& context, Status& status) {
  const bool has_result = status.holds("SuccessCriteriaMet");
  if (status.holds("FailureTarget") || (context.job.cancel && !has_result)) return;
  std::string names;
  for (std::size_t position = 0; position < status.stages.size(); ++position) {
    const StageStatus& stage = status.stages[position];
    const bool is_left_out =
        stage.phase == StagePhase::kSkipped && !context.job.stages[position].always;
    if (stage.phase != StagePhase::kFailed && !is_left_out) continue;
    names += (names.empty() ? "" : ", ") + stage.name;
  }
  if (names.empty()) return;
  set_condition(status, "Partial", true, "StageFailed", "stages without a success: " + names,
                context.now);
}

// The next stage that has to run; none: the job is over.
std::optional<std::size_t> next_stage(const Context& context, const Status& status) {
  const auto& stages = context.job.stages;
  const bool is_over =
      context.job.cancel || status.holds("FailureTarget") || job_is_out_of_time(context, status);
  for (std::size_t position = status.stage + 1; position < stages.size(); ++position) {
    // An edit may have ended it before it began.
    if (has_ended(status.stages[position].phase)) continue;
    if (!is_over || stages[position].always) return position;
  }
  return std::nullopt;
}

void skip(const Context& context, std::size_t from, std::size_t to, Status& status) {
  const std::optional<JobEnd> decided = decided_end(status);
  const bool has_failed = decided && !decided->succeeds;
  const std::string why = has_failed           ? bounded("the job has failed: " + decided->message)
                          : context.job.cancel ? "spec.cancel is true"
                                               : kJobDeadlineMessage;
  for (std::size_t position = from; position < to; ++position) {
    StageStatus& stage = status.stages[position];
    if (has_ended(stage.phase)) continue;
    stage.phase = StagePhase::kSkipped;
    stage.message = why;
  }
}

bool same_pool(const Spec& a, const Spec& b) {
  return a.pool && b.pool && a.pool->name == b.pool->name && a.pool->key == b.pool->key;
}

// The first intents of the stage are in the same write, if they may be.
void start_stage(const Context& context, std::size_t position, Status& status) {
  status.stage = position;
  status.runs.clear();
  status.completed = status.failed = IndexSet();
  clear_condition(status, "Stalled", "StageEnded", context.now);
  clear_condition(status, "Suspended", "StageEnded", context.now);
  JobView view = context.view;
  view.job.spec = view.job.stages[position].spec;
  view.job.status = status;
  view.job.status.phase = Phase::kPending;
  view.job.status.suspended += uncounted_gate(context);
  view.job.status.waiting.reset();
  view.runs.clear();
  // The slots are those that the stage before was offered.
  if (!same_pool(context.spec, view.job.spec)) view.observed.pool = PoolView{};
  const std::vector<const PodView*> no_pods;
  Context next{view, view.job, view.job.spec, context.now, no_pods};
  next.deadline = active_deadline(next);
  next.has_permit = context.has_permit;
  const Opening opening = open_runs(next, {}, 0, status);
  settle_phase(next, status);
  if (status.phase == Phase::kRunning) return;
  status.phase = Phase::kPending;
  if (opening.wait == Opening::Wait::kNothing) {
    status.waiting = Waiting{Reason::kStageStarting, "the stage has not begun",
                             "its first attempt starts", next.deadline};
  } else {
    say_why_not_open(next, opening, nullptr, status);
  }
}

// The stages have ended, and they say how the job has.
void end_by_outcome(const Context& context, WriteStatus& write) {
  Status& status = write.status;
  std::optional<JobEnd> decided = decided_end(status);
  // Nothing decides on a failure while a job is Cancelling: somebody edited the conditions.
  if (decided && !decided->succeeds && status.phase == Phase::kCancelling) decided.reset();
  if (decided) return end_as(context, *decided, write);
  if (context.job.cancel) {
    set_condition(status, "ResultReady", false, "Cancelled", "spec.cancel is true", context.now);
    return end_as_cancelled(context, write);
  }
  // Somebody took the outcome out of the conditions.
  end_as(context, {false, "StageFailed", "a stage that the result needs has not succeeded"}, write);
}

}  // namespace

void record_stage_end(const Context& context, const JobEnd& end, WriteStatus& write) {
  Status& status = write.status;
  StageStatus& stage = current(status);
  if (has_ended(stage.phase)) return;
  const Stage& what = context.job.stages[status.stage];
  const bool has_begun = stage.start_time.has_value();
  stage.phase = end.succeeds ? StagePhase::kSucceeded
                : has_begun  ? StagePhase::kFailed
                             : StagePhase::kSkipped;
  if (!end.succeeds) stage.message = bounded(end.reason + ": " + end.message);
  if (has_begun) stage.completion_time = context.now;
  write.stages_ended.push_back({status.stage, stage.phase});
  const std::string words = stage_prefix(status) + end.message;
  if (!decided_end(status)) {
    const bool fails =
        !end.succeeds && (is_needed(what) || end.cause == JobEnd::Cause::kJobDeadline);
    if (fails && end.cause != JobEnd::Cause::kCancel) {
      decide_failure(context, end.reason, words, write);
      return;
    }
    if (result_is_ready(context.job, status)) decide_success(context, status);
  }
  if (!end.succeeds && end.cause != JobEnd::Cause::kCancel) {
    write.events.push_back(Event{true, "StageFailed", "Continue", end.reason + ": " + words});
  }
  report_partial(context, status);
}

std::optional<JobEnd> recorded_stage_end(const Status& status) {
  const StageStatus& stage = status.stages[status.stage];
  if (!has_ended(stage.phase)) return std::nullopt;
  return JobEnd{stage.phase == StagePhase::kSucceeded, to_string(stage.phase), stage.message};
}

void leave_stage(const Context& context, WriteStatus& write) {
  Status& status = write.status;
  // An Always stage may have outlived the job's time, and stages that the result needs are left.
  if (!decided_end(status) && !context.job.cancel && job_is_out_of_time(context, status)) {
    decide_failure(context, to_string(Reason::kDeadlineExceeded), kJobDeadlineMessage, write);
  }
  const std::optional<std::size_t> next = next_stage(context, status);
  skip(context, next ? status.stage + 1 : 0, next.value_or(status.stages.size()), status);
  report_partial(context, status);
  if (next) {
    start_stage(context, *next, status);
  } else {
    end_by_outcome(context, write);
  }
}

std::string stage_prefix(const Status& status) {
  return status.stages.empty() ? "" : "stage " + status.stages[status.stage].name + ": ";
}

namespace {

// What is decided already, while stages still run.
std::string decided_so_far(const Job& job, const Status& status) {
  const std::optional<JobEnd> decided = decided_end(status);
  if (!decided) return job.cancel ? "the job was cancelled; " : "";
  return decided->succeeds ? "the result is ready; "
                           : "the job has failed (" + decided->reason + "); ";
}

}  // namespace

void name_stage(const Job& job, Status& status) {
  if (!status.waiting || status.stages.empty()) return;
  const std::string stage = stage_prefix(status);
  std::string& message = status.waiting->message;
  // It may be named already, with what was decided then.
  const std::size_t named = message.find(stage);
  constexpr std::size_t kLongestBefore = 160;
  if (named != std::string::npos && named <= kLongestBefore) message.erase(0, named + stage.size());
  message = decided_so_far(job, status) + stage + message;
}

}  // namespace holdfast::reconciler
