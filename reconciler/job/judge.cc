#include "reconciler/job/judge.h"

#include <algorithm>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/success_policy.h"
#include "reconciler/run/liveness.h"

namespace holdfast::reconciler {
namespace {

std::string counted(std::int64_t attempts, const std::string& one, const std::string& many) {
  return std::to_string(attempts) + (attempts == 1 ? " attempt " + one : " attempts " + many);
}

}  // namespace

std::optional<JobEnd> spent_budget(const Spec& spec, const Status& status) {
  const std::int64_t failures = status.stage_failures();
  if (failures > spec.backoff_limit) {
    return JobEnd{false, to_string(Reason::kBackoffLimitExceeded),
                  counted(failures, "failed", "failed") + ", backoffLimit forgives " +
                      std::to_string(spec.backoff_limit)};
  }
  // A run that is lost too often fails alone.
  if (spec.many_runs() && spec.backoff_limit_per_index) return std::nullopt;
  std::int64_t lost = 0;
  std::string whose;
  for (const Run& run : status.runs) {
    // An open run of many has its attempt end first.
    if ((spec.many_runs() && run.open()) || run.disruptions <= lost) continue;
    lost = run.disruptions;
    if (spec.many_runs()) whose = " of run " + std::to_string(run.index);
  }
  if (lost <= spec.disruption_limit) return std::nullopt;
  return JobEnd{false, to_string(Reason::kDisruptionLimitExceeded),
                counted(lost, "was lost", "were lost") + whose + ", disruptionLimit forgives " +
                    std::to_string(spec.disruption_limit)};
}

bool has_too_many_failed(const Spec& spec, const Status& status) {
  return spec.max_failed_indexes && status.failed.size() > *spec.max_failed_indexes;
}

namespace {

std::optional<JobEnd> judge_failure(const Context& context, const std::vector<AttemptsEnd>& ends,
                                    const Status& status) {
  const Spec& spec = context.spec;
  const AttemptsEnd* const last = ends.empty() ? nullptr : &ends.back();
  bool cancelled = false;
  for (const AttemptsEnd& end : ends) {
    if (end.fails_job) {
      return JobEnd{false, to_string(end.fails_job->reason), end.fails_job->message};
    }
    cancelled = cancelled || end.verdict.reason == Reason::kCancelled;
  }
  // The request came first, and its attempts cost nothing.
  if (cancelled) return std::nullopt;
  if (std::optional<JobEnd> spent = spent_budget(spec, status)) {
    if (last) {
      // Not what its container wrote: targets of notifications get this text, and logs stay here.
      spent->message +=
          "; the last one: " + last->verdict.reason.text() + ": " + last->verdict.message;
    }
    return spent;
  }
  if (has_too_many_failed(spec, status)) {
    return JobEnd{false, to_string(Reason::kMaxFailedIndexesExceeded),
                  "Job has exceeded the specified maximal number of failed indexes"};
  }
  if (!status.failed.empty() && status.completed.size() + status.failed.size() >= spec.wanted()) {
    return JobEnd{false, to_string(Reason::kFailedIndexes), "Job has failed indexes"};
  }
  return std::nullopt;
}

// What kept a run from running when the time was over, for the job's condition.
std::string what_kept_back(const Context& context, const std::vector<AttemptsEnd>& ends) {
  const auto& runs = context.job.status.runs;
  for (const AttemptsEnd& end : ends) {
    if (end.verdict.reason != Reason::kRunsStopped) continue;
    const auto run = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& one) { return one.index == end.run.index; });
    const std::string why =
        why_not_running(of_run(context, static_cast<std::size_t>(run - runs.begin())));
    if (why.empty()) continue;
    return (context.spec.many_runs() ? "; run " + std::to_string(end.run.index) : "") + why;
  }
  const auto& history = context.job.status.history;
  const bool in_backoff = ends.empty() && !history.empty();
  return in_backoff && history.back().outcome == Outcome::kStartTimeout
             ? "; attempt " + std::to_string(history.back().attempt) + ": " + history.back().message
             : "";
}

// The time is over. An open run may have succeeded in time, as long as it is neither read nor
// stopped. Requests to cancel or to suspend come first, if they have stopped runs.
std::optional<JobEnd> judge_time(const Context& context, const std::vector<AttemptsEnd>& ends,
                                 const Status& status) {
  if (!context.deadline || context.now < *context.deadline) return std::nullopt;
  const bool asked = context.spec.cancel || context.spec.suspend;
  const bool open = status.has_open_run();
  if (open || (asked && !ends.empty())) return std::nullopt;
  return JobEnd{false, to_string(Reason::kDeadlineExceeded),
                deadline_message(context) + what_kept_back(context, ends),
                context.deadline_is_jobs ? JobEnd::Cause::kJobDeadline : JobEnd::Cause::kItsOwn};
}

}  // namespace

std::optional<JobEnd> judge_job(const Context& context, const std::vector<AttemptsEnd>& ends,
                                const Status& status) {
  const bool completed = status.completed.size() >= context.spec.wanted();
  std::optional<JobEnd> failure = judge_failure(context, ends, status);
  if (failure && !(completed && !context.spec.many_runs())) return failure;
  if (completed) {
    return JobEnd{true, "CompletionsReached", "Reached expected number of succeeded pods"};
  }
  if (const auto met = match_success_policy(context.spec, status.completed)) {
    return JobEnd{true, to_string(Reason::kSuccessPolicy), *met};
  }
  return judge_time(context, ends, status);
}

}  // namespace holdfast::reconciler
