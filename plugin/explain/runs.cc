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

std::string place_of(const RunText& run) {
  if (!run.worker.empty()) return "worker " + run.worker;
  std::string text = run.pod.empty() ? "no pod yet" : "pod " + run.pod;
  if (!run.node.empty()) text += " on " + run.node;
  return text;
}

// The run in back-off that began its last attempt first: the one that is behind the most.
void add_oldest_that_waits(const Explaining& explaining, Facts& facts) {
  if (explaining.outlook != Outlook::kNextAttempt) return;
  const RunText* oldest = nullptr;
  for (const RunText& run : explaining.job.runs) {
    if (!run.next_attempt) continue;
    const bool is_older = !oldest || run.start.value_or(Time{}) < oldest->start.value_or(Time{});
    if (is_older) oldest = &run;
  }
  if (!oldest) return;
  Text text = "run " + std::to_string(oldest->index) + " for longest: ";
  if (oldest->failures > 0) text += plural(oldest->failures, "failure") + ", ";
  if (oldest->disruptions > 0) text += plural(oldest->disruptions, "loss") + ", ";
  if (oldest->deferrals > 0) text += "deferred " + plural(oldest->deferrals, "time") + ", ";
  const JobText& job = explaining.job;
  const std::int64_t most = int_at(job.spec, "parallelism", 1);
  const bool is_full = static_cast<std::int64_t>(job.open_runs()) >= most;
  if (is_full && *oldest->next_attempt <= explaining.now) {
    text += "back-off over, no room (parallelism " + count_text(most) + ")";
  } else {
    text += "next attempt " + Text::due(*oldest->next_attempt);
  }
  add_fact("waitingRun", "Waiting", std::move(text), facts);
}

void add_oldest_that_runs(const Explaining& explaining, Facts& facts) {
  if (explaining.outlook == Outlook::kStopped) return;  // add_stopping() names it
  const RunText* oldest = nullptr;
  for (const RunText& run : explaining.job.runs) {
    if (run.next_attempt || !run.start) continue;
    if (!oldest || *run.start < *oldest->start) oldest = &run;
  }
  if (!oldest) return;
  Text text = "run " + std::to_string(oldest->index) + " for longest, " +
              Text::lasting(*oldest->start) + ": " + place_of(*oldest);
  if (!oldest->refused.empty()) text += "; refused: " + oldest->refused;
  if (!oldest->progress.empty()) text += "; " + oldest->progress;
  add_fact("openRun", "Running", std::move(text), facts);
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

std::string note_of(const StageText& stage) {
  std::string text;
  if (stage.failures > 0) text += ", " + plural(stage.failures, "failure");
  if (stage.disruptions > 0) text += ", " + plural(stage.disruptions, "loss");
  if (stage.deferrals > 0) text += ", deferred " + plural(stage.deferrals, "time");
  if (!stage.message.empty()) text += ", " + stage.message;
  if (!stage.result.empty()) text += ", result: " + stage.result;
  if (stage.always && stage.phase == "Pending") text += ", runs in any case";
  return text.empty() ? text : text.substr(2);
}

std::int64_t failed_runs(const JobText& job) {
  const auto failed = IndexSet::parse(job.failed_indexes, IndexSet::kMost);
  return failed ? failed->size() : 0;
}

}  // namespace

void add_runs(const Explaining& explaining, Facts& facts) {
  const JobText& job = explaining.job;
  if (!job.many_runs()) return;
  const std::int64_t failed = failed_runs(job);
  std::string text = count_text(job.succeeded) + " of " + count_text(job.wanted) + " done" +
                     begun_text(explaining);
  if (failed > 0) text += ", " + count_text(failed) + " failed for good";
  add_fact("runs", "Runs", text, facts);
  if (failed > 0) {
    add_fact("failedRuns", "Failed", "indexes " + clean_text(job.failed_indexes, 200), facts);
  }
  add_oldest_that_waits(explaining, facts);
  add_oldest_that_runs(explaining, facts);
}

RunsModel runs_model(const Explaining& explaining) {
  const JobText& job = explaining.job;
  RunsModel model;
  model.wanted = job.wanted;
  model.succeeded = job.succeeded;
  model.failed = failed_runs(job);
  model.open = static_cast<std::int64_t>(job.open_runs());
  // They may be of anybody's making, and the rest trusts them to be lists of ranges.
  const auto as_ranges = [](const std::string& text) {
    const auto set = IndexSet::parse(text, IndexSet::kMost);
    return set ? set->text() : "";
  };
  model.completed_indexes = as_ranges(job.completed_indexes);
  model.failed_indexes = as_ranges(job.failed_indexes);
  model.begun = job.runs;
  return model;
}

std::vector<StageModel> stage_models(const Explaining& explaining) {
  std::vector<StageModel> models;
  for (const StageText& stage : explaining.job.stages) {
    models.push_back({stage.name, stage.phase, stage.start, stage.end, note_of(stage),
                      stage.name == explaining.job.stage});
  }
  return models;
}

}  // namespace holdfast::plugin
