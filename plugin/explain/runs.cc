// Many runs and stages, summed up.
#include <algorithm>

#include "core/utf8.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::IndexSet;

constexpr std::size_t kBar = 40;

// "[######........]  41 %"; what runs is lighter than what is done.
std::string progress_bar(const JobText& job, std::int64_t failed, bool unicode) {
  const std::int64_t whole = std::max<std::int64_t>(job.wanted, 1);
  const auto part = [&](std::int64_t count) {
    const double share = static_cast<double>(count) / static_cast<double>(whole);
    return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(kBar));
  };
  const std::size_t done = part(job.succeeded);
  const std::size_t bad = part(job.succeeded + failed);
  const std::size_t open =
      part(job.succeeded + failed + static_cast<std::int64_t>(job.open_runs()));
  std::string bar = "[";
  for (std::size_t i = 0; i < kBar; ++i) {
    if (i < done) {
      bar += unicode ? "█" : "#";
    } else if (i < bad) {
      bar += unicode ? "╳" : "x";
    } else if (i < open) {
      bar += unicode ? "▒" : "+";
    } else {
      bar += unicode ? "░" : ".";
    }
  }
  const std::int64_t percent = 100 * std::clamp<std::int64_t>(job.succeeded, 0, whole) / whole;
  return bar + "] " + std::to_string(percent) + " %";
}

std::string place_of(const RunText& run) {
  if (!run.worker.empty()) return "worker " + run.worker;
  std::string text = run.pod.empty() ? "no pod yet" : "pod " + run.pod;
  if (!run.node.empty()) text += " on " + run.node;
  return text;
}

// The run in back-off that began its last attempt first: the one that is behind the most.
void add_oldest_that_waits(const Explaining& explaining, Lines& lines) {
  if (explaining.outlook != Outlook::kNextAttempt) return;
  const RunText* oldest = nullptr;
  for (const RunText& run : explaining.job.runs) {
    if (!run.next_attempt) continue;
    const bool is_older = !oldest || run.start.value_or(Time{}) < oldest->start.value_or(Time{});
    if (is_older) oldest = &run;
  }
  if (!oldest) return;
  std::string text = "run " + std::to_string(oldest->index) + " for longest: ";
  if (oldest->failures > 0) text += plural(oldest->failures, "failure") + ", ";
  if (oldest->disruptions > 0) text += plural(oldest->disruptions, "loss") + ", ";
  if (oldest->deferrals > 0) text += "deferred " + plural(oldest->deferrals, "time") + ", ";
  const JobText& job = explaining.job;
  const std::int64_t most = int_at(job.spec, "parallelism", 1);
  const bool is_full = static_cast<std::int64_t>(job.open_runs()) >= most;
  if (is_full && *oldest->next_attempt <= explaining.now) {
    text += "back-off over, no room (parallelism " + count_text(most) + ")";
  } else {
    text += "next attempt " + due_text(*oldest->next_attempt, explaining.now);
  }
  add_fact(explaining, "Waiting", text, lines);
}

void add_oldest_that_runs(const Explaining& explaining, Lines& lines) {
  if (explaining.outlook == Outlook::kStopped) return;  // add_stopping() names it
  const RunText* oldest = nullptr;
  for (const RunText& run : explaining.job.runs) {
    if (run.next_attempt || !run.start) continue;
    if (!oldest || *run.start < *oldest->start) oldest = &run;
  }
  if (!oldest) return;
  std::string text = "run " + std::to_string(oldest->index) + " for longest, " +
                     span_text(explaining.now - *oldest->start) + ": " + place_of(*oldest);
  if (!oldest->refused.empty()) text += "; refused: " + oldest->refused;
  if (!oldest->progress.empty()) text += "; " + oldest->progress;
  add_fact(explaining, "Running", text, lines);
}

// Runs that have begun and are not done: ", 3 open, 2 in back-off".
std::string begun_text(const Explaining& explaining) {
  const Outlook outlook = explaining.outlook;
  std::size_t open = explaining.job.open_runs();
  std::size_t closed = explaining.job.runs.size() - open;
  if (stops_pods(outlook)) {
    // Runs that were closed while their pods live on are among them.
    const auto runs = stopping_runs(explaining);
    open = static_cast<std::size_t>(std::count_if(
        runs.begin(), runs.end(), [](const StoppingRun& run) { return run.index.has_value(); }));
    closed = explaining.job.runs.size() - std::min(open, explaining.job.runs.size());
  }
  const bool goes_on = outlook == Outlook::kNextAttempt;
  const bool after_resume = outlook == Outlook::kSuspended || outlook == Outlook::kToBeSuspended;
  const bool stops = !goes_on && outlook != Outlook::kToBeResumed;
  std::string text;
  if (open > 0) {
    text += ", " + count_text(static_cast<std::int64_t>(open)) + (stops ? " to stop" : " open");
  }
  if (closed > 0) {
    text += ", " + count_text(static_cast<std::int64_t>(closed)) +
            (goes_on                            ? " in back-off"
             : after_resume                     ? " to go on after a resume"
             : outlook == Outlook::kToBeResumed ? " to go on"
                                                : " not to start again");
  }
  return text;
}

std::string mark_of(const StageText& stage, bool unicode) {
  if (stage.phase == "Succeeded") return unicode ? "✓" : "+";
  if (stage.phase == "Failed") return unicode ? "✗" : "x";
  if (stage.phase == "Running") return ">";
  return stage.phase == "Skipped" ? "-" : unicode ? "·" : ".";
}

std::string stage_line(const Explaining& explaining, const StageText& stage,
                       std::size_t name_width) {
  const Page& page = explaining.page;
  std::string line = "  " + mark_of(stage, page.unicode) + " " +
                     fit(stage.name, name_width, page.unicode) + "  " +
                     fit(stage.phase, 9, page.unicode);
  std::string took;
  if (stage.start) took = span_text(stage.end.value_or(explaining.now) - *stage.start);
  line += "  " + fit(took, 8, page.unicode);
  std::string text;
  if (stage.failures > 0) text += ", " + plural(stage.failures, "failure");
  if (stage.disruptions > 0) text += ", " + plural(stage.disruptions, "loss");
  if (stage.deferrals > 0) text += ", deferred " + plural(stage.deferrals, "time");
  if (!stage.message.empty()) text += ", " + stage.message;
  if (!stage.result.empty()) text += ", result: " + stage.result;
  if (stage.always && stage.phase == "Pending") text += ", runs in any case";
  if (!text.empty()) line += "  " + text.substr(2);
  line = cut(line, page.width, page.unicode);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void add_runs(const Explaining& explaining, Lines& lines) {
  const JobText& job = explaining.job;
  if (!job.many_runs()) return;
  const auto failed = IndexSet::parse(job.failed_indexes, IndexSet::kMost);
  const std::int64_t failed_count = failed ? failed->size() : 0;
  std::string text = count_text(job.succeeded) + " of " + count_text(job.wanted) + " done" +
                     begun_text(explaining);
  if (failed_count > 0) text += ", " + count_text(failed_count) + " failed for good";
  add_fact(explaining, "Runs", text, lines);
  add_fact(explaining, "", progress_bar(job, failed_count, explaining.page.unicode), lines);
  if (failed_count > 0) {
    add_fact(explaining, "Failed", "indexes " + clean_text(job.failed_indexes, 200), lines);
  }
  add_oldest_that_waits(explaining, lines);
  add_oldest_that_runs(explaining, lines);
}

Lines stage_lines(const Explaining& explaining) {
  const std::vector<StageText>& stages = explaining.job.stages;
  if (stages.empty()) return {};
  std::size_t name_width = 4;
  for (const StageText& stage : stages) name_width = std::max(name_width, cells(stage.name));
  name_width = std::min<std::size_t>(name_width, 20);
  const auto current = static_cast<std::size_t>(
      std::find_if(stages.begin(), stages.end(),
                   [&](const StageText& stage) { return stage.name == explaining.job.stage; }) -
      stages.begin());
  // The current stage, what was just before it, and what comes.
  const std::size_t most = std::max<std::size_t>(explaining.detail.stages, 1);
  std::size_t first = 0;
  if (stages.size() > most) {
    first = std::min(current > 0 ? current - 1 : 0, stages.size() - most);
  }
  const std::size_t end = std::min(stages.size(), first + most);
  Lines lines = {"Stages"};
  if (first > 0) {
    lines.front() += " (" + plural(static_cast<std::int64_t>(first), "earlier one") + " not shown)";
  }
  for (std::size_t i = first; i < end; ++i) {
    lines.push_back(stage_line(explaining, stages[i], name_width));
  }
  if (end < stages.size()) {
    lines.push_back("  " + count_text(static_cast<std::int64_t>(stages.size() - end)) +
                    " more to come");
  }
  return lines;
}

}  // namespace holdfast::plugin
