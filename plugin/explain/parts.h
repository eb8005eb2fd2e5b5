// The parts of the model of `explain`: each adds its facts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugin/base/job_text.h"
#include "plugin/explain/advice.h"
#include "plugin/explain/explain.h"
#include "plugin/explain/gaps.h"
#include "plugin/explain/model.h"
#include "plugin/explain/outlook.h"

namespace holdfast::plugin {

// What all parts know.
struct Explaining {
  const ExplainFacts& facts;
  const JobText& job;
  Time now;
  Outlook outlook;
};

using Facts = std::vector<Fact>;

// No text: nothing.
void add_fact(std::string_view name, std::string_view label, Text text, Facts& facts);
// One more paragraph of the last fact.
void add_more(Text text, Facts& facts);
// What to do, and its commands: those that have all their names.
AdviceModel advice_with(const Advice& advice, const Gaps& gaps);
// The names of the job for commands. `run` is the run that the page is about; null: none.
Gaps gaps_of(const Explaining& explaining, const RunText* run);

// "Error, exit code 1, on node-2".
std::string how_it_ended(const EndText& end);
// What the attempt's program said at its end, from history, its pod or an Event; in lines. Empty:
// unknown.
std::string last_words(const Explaining& explaining, const EndText& end);
// "attempt 3 of run 17 Failed 40s ago: Error, exit code 1, on node-2".
Text describe_end(const Explaining& explaining, const EndText& end);
// "1,234".
std::string count_text(std::int64_t count);
std::string plural(std::int64_t count, std::string_view noun);

// What was not reported to its targets, and why.
void add_notifications(const Explaining& explaining, Facts& facts);
// How much of its budgets the job has spent.
void add_budgets(const Explaining& explaining, Facts& facts);

// What comes of a job whose runs start no further attempt: "ends as Failed"; else empty.
std::string outlook_words(const Explaining& explaining);
// What a job waits for, with what the status does not say yet.
struct Wait {
  std::string reason;
  std::string means;
  std::string why;
  std::optional<Time> since;
  std::string next;
  Text by;
  const Advice* advice;
};
Wait wait_of(const Explaining& explaining, const WaitingText& waiting);
// The status has reported such a reason of a job that ends.
bool waits_for_pods_to_end(const reconciler::AnyReason& reason);

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
void add_stopping(const Explaining& explaining, Facts& facts);
// When what is being stopped has ended or is given up, as far as it is known.
Text stopped_by(const Explaining& explaining, const WaitingText& waiting);

// The facts and the advice of a job that has not ended, and of an ended job.
void explain_waiting(const Explaining& explaining, Model& model);
void explain_ended(const Explaining& explaining, Model& model);
// Why the job waits, or why it has ended: one word, as its objects have it.
std::string waiting_reason(const Explaining& explaining);
std::string ended_reason(const Explaining& explaining);

// Whether the operator acts. No text: it does, as far as anybody can see.
struct OperatorText {
  Text text = {};
  // The living replica that has the job: its pod, and the namespace of that; empty: nobody knows.
  std::string replica = {};
  std::string replica_namespace = {};
};
OperatorText judge_operator(const Explaining& explaining);

// As many jobs of its key hold permits as the queue allows; false also if nobody knows.
bool is_key_full(const Explaining& explaining);
// The job's place in its queue, and why the queue starts no further job.
void add_queue(const Explaining& explaining, Facts& facts);
// The state of the pool of its workers.
void add_pool(const Explaining& explaining, Facts& facts);

// Sums up many runs; nothing for a job with one.
void add_runs(const Explaining& explaining, Facts& facts);
RunsModel runs_model(const Explaining& explaining);
std::vector<StageModel> stage_models(const Explaining& explaining);
// The last attempts, and the open one or the wait for the next.
std::vector<AttemptModel> attempt_models(const Explaining& explaining);

}  // namespace holdfast::plugin
