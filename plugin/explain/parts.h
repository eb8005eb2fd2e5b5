// The parts of the page of `explain`. Each returns whole lines, at most as wide as the page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugin/base/job_text.h"
#include "plugin/explain/advice.h"
#include "plugin/explain/explain.h"
#include "plugin/explain/outlook.h"

namespace holdfast::plugin {

using Lines = std::vector<std::string>;

// The operator acts within a second of a deadline. The rest is for clocks and slow API servers.
inline constexpr std::chrono::seconds kLate{5};

// How much the page says, so that it fits onto the screen.
struct Detail {
  std::size_t attempts = 10;
  std::size_t stages = 17;
  std::size_t text_lines = 5;  // of one fact
};

// What all parts know.
struct Explaining {
  const ExplainFacts& facts;
  const JobText& job;
  Time now;
  const Page& page;
  Detail detail;
  Outlook outlook;
};

// "  Why      text", and further lines of the text below it. No text: nothing.
void add_fact(const Explaining& explaining, std::string_view label, std::string_view text,
              Lines& lines);
// The same with all of its lines.
void add_whole_fact(const Explaining& explaining, std::string_view label, std::string_view text,
                    Lines& lines);
// What to do, and its commands: those that have all their names.
void add_advice(const Explaining& explaining, const Advice& advice, const Gaps& gaps, Lines& lines);
// The names of the job for commands. `run` is the run that the page is about; null: none.
Gaps gaps_of(const Explaining& explaining, const RunText* run);

// "Error, exit code 1, on node-2".
std::string how_it_ended(const EndText& end);
// What the attempt's program said at its end, from history, its pod or an Event; in lines. Empty:
// unknown.
std::string last_words(const Explaining& explaining, const EndText& end);
// Such lines below `label`: the first, which says how it ended, and the last ones, which say why.
void add_last_words(const Explaining& explaining, std::string_view label, std::string_view words,
                    Lines& lines);
// "attempt 3 of run 17 Failed 40s ago: Error, exit code 1, on node-2".
std::string describe_end(const Explaining& explaining, const EndText& end);
// "in 12s (14:00:12 UTC)", "due 2s ago (13:59:58 UTC), being done now". What is later than an
// operator that lives is not called being done.
std::string due_text(Time time, Time now);
// "1,234".
std::string count_text(std::int64_t count);
std::string plural(std::int64_t count, std::string_view noun);

// What was not reported to its targets, and why.
void add_notifications(const Explaining& explaining, Lines& lines);
// How much of its budgets the job has spent.
void add_budgets(const Explaining& explaining, Lines& lines);

// What comes of a job whose runs start no further attempt: "ends as Failed"; else empty.
std::string outlook_words(const Explaining& explaining);
// What a job waits for, with what the status does not say yet.
struct Wait {
  std::string reason;
  std::string means;
  std::string why;
  std::optional<Time> since;
  std::string next;
  std::string by;
  const Advice* advice;
};
Wait wait_of(const Explaining& explaining, const WaitingText& waiting);

// A run that is being stopped: it is open, or its pod lives on.
struct StoppingRun {
  std::optional<std::int64_t> index;  // none: nobody knows
  std::string pod;
  std::string node;
  std::string worker;
  std::optional<Time> grace_end;  // none: its pod is not deleted yet, or not known
};
std::vector<StoppingRun> stopping_runs(const Explaining& explaining);
// Names some of them; nothing where none is known.
void add_stopping(const Explaining& explaining, Lines& lines);
// When what is being stopped has ended or is given up, as far as it is known.
std::string stopped_by(const Explaining& explaining, const WaitingText& waiting);

// The facts of a job that has not ended, and of an ended job.
Lines waiting_lines(const Explaining& explaining);
Lines ended_lines(const Explaining& explaining);
// Why the job waits, or why it has ended: one word, as its objects have it.
std::string waiting_reason(const Explaining& explaining);
std::string ended_reason(const Explaining& explaining);

// Whether the operator acts. No text: it does, as far as anybody can see.
struct OperatorText {
  std::string text = {};
  // The living replica that has the job: its pod, and the namespace of that; empty: nobody knows.
  std::string replica = {};
  std::string replica_namespace = {};
};
OperatorText judge_operator(const Explaining& explaining);

// The job's place in its queue, and why the queue starts no further job.
void add_queue(const Explaining& explaining, Lines& lines);
// The state of the pool of its workers.
void add_pool(const Explaining& explaining, Lines& lines);

// Sums up many runs; nothing for a job with one.
void add_runs(const Explaining& explaining, Lines& lines);
// One line for each stage; nothing for a job without stages.
Lines stage_lines(const Explaining& explaining);
// The drawing of the last attempts.
Lines attempt_lines(const Explaining& explaining);

}  // namespace holdfast::plugin
