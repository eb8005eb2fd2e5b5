#include "reconciler/job/reporting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "reconciler/job/conditions.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/waiting.h"

namespace holdfast::reconciler {
namespace {

// The worse, the higher.
int trouble(const GoesOn& step) {
  const AnyReason& reason = step.waiting->reason;
  // Its deadline is on record here alone.
  if (reason == Reason::kPodTemplateRefused) return 5;
  if (step.stalled.value_or(false)) return 4;
  if (reason == Reason::kPodRunning || reason == Reason::kWorkerRunning) return 0;
  if (reason == Reason::kPodStarting || reason == Reason::kWorkerStarting) return 1;
  return step.waiting->deadline ? 3 : 2;
}

bool is_worse(const GoesOn& one, const GoesOn& other) {
  if (trouble(one) != trouble(other)) return trouble(one) > trouble(other);
  const auto& a = one.waiting->deadline;
  const auto& b = other.waiting->deadline;
  return a && (!b || *a < *b);
}

// How far a message says that its run is: "42%", "42.5 %" or "21/50" at its start. None: it does
// not say, or not in these words.
std::optional<double> percent_in(const std::string& message) {
  const char* const end = message.data() + message.size();
  double number = 0;
  auto [rest, error] = std::from_chars(message.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  if (rest != end && *rest == '/') {
    double whole = 0;
    if (std::from_chars(rest + 1, end, whole).ec != std::errc() || !(whole > 0))
      return std::nullopt;
    return std::clamp(100 * number / whole, 0.0, 100.0);
  }
  if (rest != end && *rest == ' ') ++rest;
  return rest != end && *rest == '%' ? std::optional(std::clamp(number, 0.0, 100.0)) : std::nullopt;
}

// Of a job with many runs: the lowest, the mean, and how many have said something.
std::string progress_of(const Status& status) {
  std::size_t open = 0, reported = 0, numbers = 0;
  double lowest = 100, sum = 0;
  for (const Run& run : status.runs) {
    if (!run.open()) continue;
    ++open;
    if (run.progress.empty()) continue;
    ++reported;
    const std::optional<double> percent = percent_in(run.progress);
    if (!percent) continue;
    ++numbers;
    lowest = std::min(lowest, *percent);
    sum += *percent;
  }
  if (reported == 0) return "";
  std::string text = "; " + std::to_string(reported) + " of " + std::to_string(open) +
                     " open runs have told their progress";
  if (numbers == 0) return text;
  const auto whole = [](double percent) {
    return std::to_string(static_cast<int>(percent)) + " %";
  };
  return text + ": lowest " + whole(lowest) + ", mean " + whole(sum / static_cast<double>(numbers));
}

// So many other troubles are named, each with its runs, and the rest counted. A longer list of runs
// is a number.
constexpr std::size_t kOtherTroubles = 3;
constexpr std::size_t kLongestList = 40;

std::string named(const IndexSet& runs) {
  if (runs.size() == 1) return "run " + runs.text();
  const std::string list = runs.text();
  return list.size() <= kLongestList ? "runs " + list : std::to_string(runs.size()) + " runs";
}

// "; run 3: NodeSilent; runs 4-6: PodStarting": of the runs beside `worst` that do not run, the
// worst first.
std::string others_in_trouble(const std::vector<RunStepAt>& steps, const GoesOn& worst) {
  struct Trouble {
    int degree = 0;
    AnyReason reason;
    IndexSet runs;
  };
  std::vector<Trouble> troubles;
  for (const RunStepAt& at : steps) {
    const auto* const one = std::get_if<GoesOn>(&at.step);
    if (!one || one == &worst || !one->waiting || trouble(*one) == 0) continue;
    const AnyReason& reason = one->waiting->reason;
    auto found = std::ranges::find(troubles, reason, &Trouble::reason);
    if (found == troubles.end()) found = troubles.insert(found, {0, reason, {}});
    found->degree = std::max(found->degree, trouble(*one));
    found->runs.add(one->run.index);
  }
  std::ranges::stable_sort(troubles, std::ranges::greater(), &Trouble::degree);
  std::string text;
  std::size_t more = 0;
  for (std::size_t i = 0; i < troubles.size(); ++i) {
    const auto& [degree, reason, runs] = troubles[i];
    if (i < kOtherTroubles) {
      text += "; " + named(runs) + ": " + reason.text();
    } else {
      more += runs.size();
    }
  }
  return more == 0 ? text : text + "; " + std::to_string(more) + " more";
}

// In a job with many runs, the words of one run name it.
Waiting words_of(const Context& context, const std::vector<RunStepAt>& steps, const GoesOn& worst,
                 const Status& next) {
  Waiting waiting = *worst.waiting;
  if (!context.spec.many_runs()) return waiting;
  const std::string others = others_in_trouble(steps, worst);
  if (trouble(worst) == 0) {
    const std::string runs = others.empty() ? "the open runs" : "the other open runs";
    waiting = context.spec.pool
                  ? open_runs_waiting(context, Reason::kWorkerRunning, runs + " run on workers")
                  : open_runs_waiting(context, Reason::kPodRunning, "the pods of " + runs + " run");
  } else {
    waiting.message = "run " + std::to_string(worst.run.index) + ": " + waiting.message;
  }
  waiting.message += others + progress_of(next);
  return waiting;
}

}  // namespace

void record_places(const std::vector<RunStepAt>& steps, const Status& before, Status& next) {
  auto run = next.runs.begin();  // both lists are in order
  for (const auto& [position, step] : steps) {
    const std::int64_t index = before.runs[position].index;
    while (run != next.runs.end() && run->index < index) ++run;
    if (run == next.runs.end()) return;
    if (run->index != index) continue;
    const auto* const open = std::get_if<GoesOn>(&step);
    if (open && open->waiting) *run = open->run;
    if (open && !open->progress.empty()) run->progress = open->progress;
  }
}

bool report_worst_run(const Context& context, const std::vector<RunStepAt>& steps, Status& status) {
  const GoesOn* worst = nullptr;
  bool stalled = false;
  // The job's clock stands still while it says so, and only the pods of all open runs may do that.
  const bool all_gated = is_gated(context, status);
  for (const RunStepAt& at : steps) {
    const auto* const one = std::get_if<GoesOn>(&at.step);
    if (!one || !one->waiting) continue;
    if (one->waiting->reason == Reason::kPodGated && !all_gated) continue;
    if (!worst || is_worse(*one, *worst)) worst = one;
    stalled = stalled || one->stalled.value_or(false);
  }
  if (!worst) return false;
  status.waiting = words_of(context, steps, *worst, status);
  if (is_held_back(context, status)) {
    status.waiting->message +=
        "; no further run opens: " + version_waiting(context, std::nullopt).message;
  } else if (is_held_by_guard(context, status) && !context.view.observed.guard.fault.empty()) {
    status.waiting->message +=
        "; no further run opens: " + guard_waiting(context, std::nullopt).message;
  }
  if (stalled) {
    set_condition(status, "Stalled", true, status.waiting->reason.text(), status.waiting->message,
                  context.now);
  } else if (worst->stalled) {
    clear_condition(status, "Stalled", "Started", context.now);
  }
  return true;
}

void keep_words(const Spec& spec, const Status& before, Status& next) {
  const std::size_t common = std::min(next.runs.size(), before.runs.size());
  for (std::size_t position = 0; position < common; ++position) {
    Run& run = next.runs[position];
    const Run& was = before.runs[position];
    // The first message of an attempt is a fact: it has begun to work.
    if (run.index == was.index && run.attempt == was.attempt && !was.progress.empty()) {
      run.progress = was.progress;
    }
  }
  const auto& reported = before.waiting;
  if (!next.waiting || !reported || next.waiting->reason != reported->reason) return;
  if (!spec.many_runs() && reported->reason != Reason::kPodUnschedulable) return;
  next.waiting->message = reported->message;
  next.waiting->next_action = reported->next_action;
  for (Condition& condition : next.conditions) {
    const Condition* const was = before.condition(condition.type);
    if (was && was->status == condition.status && was->reason == condition.reason) {
      condition.message = was->message;
    }
  }
}

bool says_version(const Status& status) {
  const Condition* const stalled = status.condition("Stalled");
  return stalled && stalled->status && stalled->reason == to_string(Reason::kNotKnownToThisVersion);
}

bool report_version(const Context& context, Status& status) {
  const bool is_reported = says_version(status);
  const bool waits = status.waiting && status.waiting->reason == Reason::kNotKnownToThisVersion;
  // The context has the stage that a write leaves.
  const bool is_running =
      status.phase == Phase::kRunning && status.stage == context.job.status.stage;
  if (waits || (is_running && is_held_back(context, status))) {
    const Waiting words = waits ? *status.waiting : version_waiting(context, std::nullopt);
    set_condition(status, "Stalled", true, words.reason.text(), words.message, context.now);
    return !is_reported;
  }
  if (is_reported && !is_terminal(status.phase)) {
    clear_condition(status, "Stalled", "Known", context.now);
  }
  return is_reported;
}

namespace {

std::string unreadable_rules(const Spec& spec) {
  std::string rules;
  for (std::size_t position = 0; position < spec.success_policy.size(); ++position) {
    const auto& indexes = spec.success_policy[position].indexes;
    if (!indexes || !indexes->empty()) continue;
    rules += (rules.empty() ? "" : ", ") + std::to_string(position);
  }
  return rules;
}

}  // namespace

void report_unreadable(const Context& context, Status& next) {
  const bool goes_on = !is_terminal(next.phase) && next.phase != Phase::kSuspended &&
                       next.phase != Phase::kCancelling && !recorded_end(next);
  if (!goes_on) return;
  const Spec& spec = next.stages.empty() ? context.spec : context.job.stages[next.stage].spec;
  const std::string rules = unreadable_rules(spec);
  const Condition* const stalled = next.condition("Stalled");
  if (rules.empty() || (stalled && stalled->status && !says_unreadable(next))) return;
  set_condition(next, "Stalled", true, kIndexesUnreadable,
                "succeededIndexes of successPolicy.rules " + rules +
                    " are no rising numbers and ranges, so these rules are never met",
                context.now);
}

bool says_unreadable(const Status& status) {
  const Condition* const stalled = status.condition("Stalled");
  return stalled && stalled->status && stalled->reason == kIndexesUnreadable;
}

void say_why_not_open(const Context& context, const Opening& opening, const AttemptsEnd* last,
                      Status& status) {
  const auto run = std::find_if(status.runs.begin(), status.runs.end(),
                                [&](const Run& one) { return one.index == opening.index; });
  if (opening.wait == Opening::Wait::kPaused) {
    status.waiting = paused_waiting(context);
  } else if (opening.wait == Opening::Wait::kVersion) {
    status.waiting = version_waiting(context, active_deadline(context, status));
  } else if (opening.wait == Opening::Wait::kGuard) {
    status.waiting = guard_waiting(context, active_deadline(context, status));
  } else if (opening.wait == Opening::Wait::kOldPod) {
    status.waiting = old_pod_waiting(context);
  } else if (opening.wait == Opening::Wait::kPermit) {
    status.waiting = queue_waiting(context);
  } else if (opening.wait == Opening::Wait::kWorker) {
    status.waiting = worker_waiting(context, status);
  } else if (opening.wait == Opening::Wait::kEmptyWorker) {
    status.waiting = empty_worker_waiting(context, status);
  } else if (opening.wait == Opening::Wait::kBackoff && run != status.runs.end()) {
    // The attempt that ended last may be another run's.
    const bool is_its = last && (last->run.index == run->index || last->lost_together > 0);
    status.waiting = is_its ? next_attempt_waiting(context, status, *last, *run)
                            : backoff_waiting(context, *opening.due);
    if (run->deferrals > 0) status.waiting->reason = Reason::kDeferred;
  } else {
    status.waiting = turn_waiting(context, status);
  }
}

}  // namespace holdfast::reconciler
