// The attempts and their bounds as rows of the timeline.
#include <algorithm>

#include "plugin/explain/parts.h"
#include "plugin/explain/timeline.h"
#include "plugin/terminal/moments.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;
using std::chrono::seconds;

std::string number_of(const Explaining& explaining, std::int64_t attempt,
                      std::optional<std::int64_t> index) {
  std::string text = std::to_string(attempt);
  if (explaining.job.many_runs() && index) text += " run " + std::to_string(*index);
  return text;
}

TimelineRow row_of(const Explaining& explaining, const EndText& end) {
  TimelineRow row;
  row.label = number_of(explaining, end.attempt, end.index) + " " + end.outcome;
  row.start = end.start.value_or(*end.end);
  row.end = end.end;
  row.duration = span_text(*row.end - row.start);
  if (!end.stage.empty() && end.stage != explaining.job.stage) row.note += end.stage + ": ";
  if (end.count > 1) row.note += count_text(end.count) + " times, ";
  if (end.outcome != "Succeeded" && end.reason != end.outcome) row.note += end.reason + ", ";
  if (end.exit_code && *end.exit_code != 0) {
    row.note += "exit " + std::to_string(*end.exit_code) + ", ";
  }
  row.note += end.worker.empty() ? end.node : end.worker;
  if (row.note.ends_with(", ")) row.note.resize(row.note.size() - 2);
  return row;
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
  if (is_one_of({kPodRunning, kWorkerRunning, kPaused, kQueued})) return std::nullopt;
  return Bound{'S', "start deadline"};
}

void add_mark(char letter, std::string name, Time time, TimelineRow& row) {
  const bool is_there =
      std::any_of(row.marks.begin(), row.marks.end(), [&](const TimelineMark& mark) {
        const Duration apart = mark.at > time ? mark.at - time : time - mark.at;
        return apart <= seconds(2);  // the same bound, from another source
      });
  if (!is_there) row.marks.push_back({letter, std::move(name), time});
}

// The bounds of the heartbeat, as its Lease shows them: between renewals they move on.
void add_heartbeat(const Explaining& explaining, TimelineRow& row) {
  const Json& heartbeat = at(explaining.job.spec, "heartbeat");
  const Json& lease = explaining.facts.lease;
  const auto renewed = moment_at(at(lease, "spec"), "renewTime");
  if (!heartbeat.is_object() || !renewed) return;
  if (const auto duration = seconds_in(at(lease, "spec"), "leaseDurationSeconds")) {
    add_mark('L', "lost, unless it renews", *renewed + *duration, row);
  }
  const std::string age =
      string_at(at(at(lease, "metadata"), "annotations"), "holdfast.dev/progress-age");
  const bool is_number =
      !age.empty() && age.size() < 9 && age.find_first_not_of("0123456789.") == std::string::npos;
  const auto progress = seconds_in(heartbeat, "progressDeadlineSeconds");
  if (progress && is_number) {
    const seconds since{static_cast<std::int64_t>(std::atof(age.c_str()))};
    add_mark('P', "progress deadline", *renewed - since + *progress, row);
  }
}

void add_node(const Explaining& explaining, TimelineRow& row) {
  const auto renewed = moment_at(at(explaining.facts.node_lease, "spec"), "renewTime");
  // Of a living node this bound says nothing: it moves on each 10 s.
  constexpr seconds kQuiet{15};
  if (!renewed || explaining.now - *renewed < kQuiet) return;
  const auto lost_after = seconds_in(explaining.job.spec, "lostAfterSeconds").value_or(seconds(40));
  add_mark('L', "lost (lostAfterSeconds)", *renewed + lost_after, row);
}

void add_limits(const Explaining& explaining, const RunText& run, TimelineRow& row) {
  const JobText& job = explaining.job;
  const auto own = seconds_in(job.spec, "attemptDeadlineSeconds");
  // With a heartbeat the time counts from the Lease's grant, which nobody sees here.
  const bool is_known = !at(job.spec, "heartbeat").is_object();
  if (own && run.start && is_known) add_mark('A', "attempt deadline", *run.start + *own, row);
  for (const ActiveDeadline& one : active_deadlines(explaining.facts.job, job)) {
    add_mark('D', one.name, one.at, row);
  }
}

void add_reported_bound(const Explaining& explaining, TimelineRow& row) {
  const auto& waiting = explaining.job.waiting;
  if (!waiting || !waiting->deadline) return;
  if (const auto bound = bound_of(AnyReason(waiting->reason))) {
    add_mark(bound->letter, bound->name, *waiting->deadline, row);
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
std::optional<TimelineRow> current_row(const Explaining& explaining) {
  const JobText& job = explaining.job;
  if (job.has_ended() || job.many_runs() || job.runs.empty()) return std::nullopt;
  const RunText& run = job.runs.front();
  TimelineRow row;
  if (run.next_attempt) {
    // The attempt before it has its row.
    if (explaining.outlook != Outlook::kNextAttempt) return std::nullopt;
    row.label = std::to_string(job.attempt + 1) + " next";
    row.waits = true;
    const bool has_end = !job.history.empty() && job.history.back().end;
    row.start = has_end ? *job.history.back().end : explaining.now;
    const bool is_over = *run.next_attempt <= explaining.now;
    // In whole seconds, as status.waiting.deadline.
    if (!is_over) {
      add_mark('B', "back-off ends", std::chrono::floor<std::chrono::seconds>(*run.next_attempt),
               row);
    }
    if (is_over && job.waiting) row.note = "waits: " + job.waiting->reason;
    return row;
  }
  if (!run.start) return std::nullopt;
  const Outlook outlook = explaining.outlook;
  const bool stops = outlook != Outlook::kNextAttempt && outlook != Outlook::kOutOfTime;
  row.label = std::to_string(run.attempt) + " " + (stops ? "stopping" : state_of(job));
  row.start = *run.start;
  row.duration = span_text(explaining.now - *run.start);
  row.note = run.worker.empty() ? run.node : run.worker;
  // The names of the spec's own limits come first: what `waiting` says may be one of them. Those
  // of an attempt that is being stopped count no more.
  if (!stops) add_limits(explaining, run, row);
  if (!stops || outlook == Outlook::kStopped) add_reported_bound(explaining, row);
  if (!stops) {
    add_heartbeat(explaining, row);
    add_node(explaining, row);
  }
  std::stable_sort(row.marks.begin(), row.marks.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return row;
}

}  // namespace

Lines attempt_lines(const Explaining& explaining) {
  const JobText& job = explaining.job;
  std::vector<TimelineRow> rows;
  for (const EndText& end : job.history) {
    if (end.end) rows.push_back(row_of(explaining, end));
  }
  if (auto current = current_row(explaining)) rows.push_back(std::move(*current));
  if (rows.empty()) return {};
  if (rows.size() > explaining.detail.attempts) {
    rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(explaining.detail.attempts));
  }
  const std::string title = job.many_runs() ? "Last ends of attempts" : "Attempts";
  const auto earlier = job.attempt - static_cast<std::int64_t>(rows.size());
  Lines lines = {title};
  if (!job.many_runs() && earlier > 0 && job.stages.empty() && !rows.back().waits) {
    lines.front() += " (" + plural(earlier, "earlier one") + " not shown)";
  }
  const Lines drawing =
      draw_timeline(rows, {explaining.now, explaining.page.width, explaining.page.unicode});
  lines.insert(lines.end(), drawing.begin(), drawing.end());
  return lines;
}

}  // namespace holdfast::plugin
