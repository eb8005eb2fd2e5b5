// Decides about one open run: its attempt is recorded. Its pod runs, has ended, is silent, or does
// not exist. Pure, and knows nothing of the job's other runs.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "reconciler/run/context.h"
#include "reconciler/run/verdict.h"

namespace holdfast::reconciler {

// The end of a run's attempt, for history and budgets.
struct AttemptEnd {
  Verdict verdict;
  Duration trouble_for{0};
};

// A live read must come first.
struct ReadFirst {};

// The template can never work, and this says why: the job fails.
struct TemplateFails {
  std::string why;
};

// The run as it should be recorded, what it waits for, and whether a person must help (none: as
// recorded). Written if something changed, soon or `at_once`. `waiting` none: not yet.
struct GoesOn {
  Run run;
  std::optional<Waiting> waiting{};
  std::optional<bool> stalled{};
  bool at_once = false;
  std::string progress{};  // the worker's last message; empty: none
  bool create = false;     // the attempt's pod
  // Decide again after this time.
  std::optional<Duration> wake_after{};

  void wake_in(Duration delay);
};

// What should become of an open run now.
using RunStep = std::variant<GoesOn, ReadFirst, AttemptEnd, TemplateFails>;

RunStep decide_run(const RunContext& context);

// The user's request, or the end of the job's time, ends the open attempt. None: neither is due.
std::optional<Verdict> requested_end(const RunContext& context);

// The end of an attempt that was well, because its job or stage ends for this reason. It spends no
// budget, and its run has not failed.
Verdict stopped_by(const RunContext& context, const std::string& end);

// The recorded time at which the API server's refusal of the template becomes final, if it lasts
// until then. None: the last creation was not refused in this way.
std::optional<Time> template_doubted_until(const Status& status);

}  // namespace holdfast::reconciler
