// The attempts and their bounds.
#include <algorithm>

#include "plugin/explain/parts.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;
using std::chrono::seconds;

AttemptModel model_of(const Explaining& explaining, const EndText& end) {
  AttemptModel model;
  model.attempt = end.attempt;
  if (explaining.job.many_runs()) model.index = end.index;
  model.stage = end.stage;
  model.state = end.outcome;
  model.reason = end.reason;
  model.exit_code = end.exit_code;
  model.count = end.count;
  model.pod = end.pod;
  model.node = end.node;
  model.worker = end.worker;
  model.start = end.start.value_or(*end.end);
  model.end = end.end;
  std::string& note = model.note;
  if (!end.stage.empty() && end.stage != explaining.job.stage) note += end.stage + ": ";
  if (end.count > 1) note += count_text(end.count) + " times, ";
  if (end.outcome != "Succeeded" && end.reason != end.outcome) note += end.reason + ", ";
  if (end.exit_code && *end.exit_code != 0) {
    note += "exit " + std::to_string(*end.exit_code) + ", ";
  }
  note += end.worker.empty() ? end.node : end.worker;
  if (note.ends_with(", ")) note.resize(note.size() - 2);
  if (end.outcome != "Succeeded") model.words = last_words(explaining, end);
  return model;
}

// What the deadline in `waiting` is about. Reasons whose deadline is an attempt's own limit are
// marked from the spec.
struct Bound {
  char letter;
  const char* name;
};
std::optional<Bound> bound_of(const AnyReason& reason) {
  const auto is_one_of = [&](std::initializer_list<Reason> reasons) {
    return std::any_of(reasons.begin(), reasons.end(), [&](Reason one) { return reason == one; });
  };
  using enum Reason;
  if (is_one_of({kRetryBackoff, kDeferred, kRestartsSpread})) return Bound{'B', "back-off ends"};
  if (is_one_of({kNodeSilent, kNodeGone})) return Bound{'L', "lost (lostAfterSeconds)"};
  if (is_one_of({kHolderSilent})) return Bound{'L', "lost (leaseDurationSeconds)"};
  if (is_one_of({kNoProgress})) return Bound{'P', "progress deadline"};
  if (is_one_of({kPodNotCreated})) return Bound{'L', "lost, if no pod appears"};
  if (is_one_of({kPodTerminating, kRunsStopped})) return Bound{'G', "given up"};
  if (is_one_of({kPodTemplateRefused})) return Bound{'F', "the job fails"};
  if (is_one_of({kPodGated, kPodUnschedulable})) return Bound{'S', "schedule deadline"};
  if (is_one_of({kPodRunning, kWorkerRunning, kPaused, kQueued, kGuardMissing})) {
    return std::nullopt;
  }
  return Bound{'S', "start deadline"};
}

void add_bound(char letter, std::string name, Time time, AttemptModel& attempt) {
  const bool is_there =
      std::any_of(attempt.bounds.begin(), attempt.bounds.end(), [&](const BoundModel& bound) {
        const Duration apart = bound.at > time ? bound.at - time : time - bound.at;
        return apart <= seconds(2);  // the same bound, from another source
      });
  if (!is_there) attempt.bounds.push_back({letter, std::move(name), time});
}

// The bounds of the heartbeat, as its Lease shows them: between renewals they move on.
void add_heartbeat(const Explaining& explaining, AttemptModel& attempt) {
  const Json& heartbeat = at(explaining.job.spec, "heartbeat");
  const Json& lease = explaining.facts.lease;
  const auto renewed = moment_at(at(lease, "spec"), "renewTime");
  if (!heartbeat.is_object() || !renewed) return;
  if (const auto duration = seconds_in(at(lease, "spec"), "leaseDurationSeconds")) {
    add_bound('L', "lost, unless the agent renews", *renewed + *duration, attempt);
  }
  const std::string age =
      string_at(at(at(lease, "metadata"), "annotations"), "holdfast.dev/progress-age");
  const bool is_number =
      !age.empty() && age.size() < 9 && age.find_first_not_of("0123456789.") == std::string::npos;
  const auto progress = seconds_in(heartbeat, "progressDeadlineSeconds");
  if (progress && is_number) {
    const seconds since{static_cast<std::int64_t>(std::atof(age.c_str()))};
    add_bound('P', "progress deadline", *renewed - since + *progress, attempt);
  }
}

void add_node(const Explaining& explaining, AttemptModel& attempt) {
  const auto renewed = moment_at(at(explaining.facts.node_lease, "spec"), "renewTime");
  // Of a living node this bound says nothing: it moves on each 10 s.
  constexpr seconds kQuiet{15};
  if (!renewed || explaining.now - *renewed < kQuiet) return;
  const auto lost_after = seconds_in(explaining.job.spec, "lostAfterSeconds").value_or(seconds(40));
  add_bound('L', "lost (lostAfterSeconds)", *renewed + lost_after, attempt);
}

void add_limits(const Explaining& explaining, const RunText& run, AttemptModel& attempt) {
  const JobText& job = explaining.job;
  const auto own = seconds_in(job.spec, "attemptDeadlineSeconds");
  // With a heartbeat the time counts from the Lease's grant, which nobody sees here.
  const bool is_known = !at(job.spec, "heartbeat").is_object();
  if (own && run.start && is_known) add_bound('A', "attempt deadline", *run.start + *own, attempt);
  for (const ActiveDeadline& one : active_deadlines(explaining.facts.job, job)) {
    add_bound('D', one.name, one.at, attempt);
  }
}

void add_reported_bound(const Explaining& explaining, AttemptModel& attempt) {
  const auto& waiting = explaining.job.waiting;
  if (!waiting || !waiting->deadline) return;
  if (const auto bound = bound_of(AnyReason(waiting->reason))) {
    add_bound(bound->letter, bound->name, *waiting->deadline, attempt);
  }
}

std::string state_of(const JobText& job) {
  if (!job.waiting) return "open";
  const AnyReason reason(job.waiting->reason);
  if (reason == Reason::kPodRunning || reason == Reason::kWorkerRunning) return "running";
  if (reason == Reason::kPodStarting || reason == Reason::kWorkerStarting) return "starting";
  if (reason == Reason::kPodTerminating || reason == Reason::kRunsStopped) return "stopping";
  return "open";
}

// The attempt that is open, or the wait for the next one, of a job with one run.
std::optional<AttemptModel> current_attempt(const Explaining& explaining) {
  const JobText& job = explaining.job;
  if (job.has_ended() || job.many_runs() || job.runs.empty()) return std::nullopt;
  const RunText& run = job.runs.front();
  AttemptModel attempt;
  attempt.stage = job.stage;
  if (run.next_attempt) {
    // The attempt before it has its attempt.
    if (explaining.outlook != Outlook::kNextAttempt) return std::nullopt;
    attempt.attempt = job.attempt + 1;
    attempt.state = "next";
    attempt.waits = true;
    const bool has_end = !job.history.empty() && job.history.back().end;
    attempt.start = has_end ? *job.history.back().end : explaining.now;
    const bool is_over = *run.next_attempt <= explaining.now;
    // In whole seconds, as status.waiting.deadline.
    if (!is_over) {
      add_bound('B', "back-off ends", std::chrono::floor<std::chrono::seconds>(*run.next_attempt),
                attempt);
    }
    if (is_over && job.waiting) attempt.note = "waits: " + job.waiting->reason;
    return attempt;
  }
  if (!run.start) return std::nullopt;
  const Outlook outlook = explaining.outlook;
  const bool stops = outlook != Outlook::kNextAttempt && outlook != Outlook::kOutOfTime;
  attempt.attempt = run.attempt;
  attempt.pod = run.pod;
  attempt.node = run.node;
  attempt.worker = run.worker;
  attempt.state = stops ? "stopping" : state_of(job);
  attempt.start = *run.start;
  attempt.note = run.worker.empty() ? run.node : run.worker;
  // The names of the spec's own limits come first: what `waiting` says may be one of them. Those
  // of an attempt that is being stopped count no more.
  if (!stops) add_limits(explaining, run, attempt);
  if (!stops || outlook == Outlook::kStopped) add_reported_bound(explaining, attempt);
  if (!stops) {
    add_heartbeat(explaining, attempt);
    add_node(explaining, attempt);
  }
  std::stable_sort(attempt.bounds.begin(), attempt.bounds.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return attempt;
}

}  // namespace

std::vector<AttemptModel> attempt_models(const Explaining& explaining) {
  std::vector<AttemptModel> models;
  for (const EndText& end : explaining.job.history) {
    if (end.end) models.push_back(model_of(explaining, end));
  }
  if (auto current = current_attempt(explaining)) models.push_back(std::move(*current));
  return models;
}

}  // namespace holdfast::plugin
