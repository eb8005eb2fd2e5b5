// What `explain` knows of a job, as values: its facts as sentences, its advice, runs, stages and
// attempts. The terminal, `-o model`, `-o html` and the page draw this, and no rule of explaining
// is written anywhere else.
//
//   const Model model = model_of(facts, now);
//   terminal: draw(model, now, Page{});  others: to_json(model, now).dump()
//
// Pure. Texts of the cluster are cleaned of control characters. docs/explain-model.md says what
// the JSON has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"
#include "plugin/base/job_text.h"
#include "plugin/explain/explain.h"
#include "plugin/explain/moments_text.h"

namespace holdfast::plugin {

// One answer.
struct Fact {
  std::string name;   // its key in the JSON: "waitingRun"
  std::string label;  // as people see it: "Waiting"
  Text text;
  std::vector<Text> more;  // further paragraphs
  std::string words;       // lines that a program has said, as it said them
};

// What a person can do. The commands are for a shell, most useful first.
struct AdviceModel {
  std::string text;
  std::vector<std::string> commands;
};

// Of the current stage.
struct RunsModel {
  std::int64_t wanted = 1;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;  // for good
  std::int64_t open = 0;
  std::string completed_indexes;  // "0-7,9"
  std::string failed_indexes;
  std::vector<RunText> begun;  // those that are open or between two attempts
};

struct StageModel {
  std::string name;
  std::string phase;
  std::optional<Time> start;
  std::optional<Time> end;
  std::string note;  // "1 failure, result: s3://..."
  bool is_current = false;
};

// A bound: something happens then, if nothing happens before.
struct BoundModel {
  char letter = '?';
  std::string name;  // "start deadline"
  Time at{};
};

struct AttemptModel {
  std::int64_t attempt = 0;
  std::optional<std::int64_t> index;  // of a job with many runs
  std::string stage;
  std::string state;  // "Failed", "running", "next"
  std::string reason;
  std::optional<std::int64_t> exit_code;
  std::int64_t count = 1;  // so many in a row ended alike
  std::string pod;
  std::string node;
  std::string worker;
  Time start{};
  std::optional<Time> end;         // none: it lasts
  bool waits = false;              // nothing runs: a wait from `start` on
  std::string note;                // "Error, exit 1, node-2"
  std::string words;               // lines: what its program said at its end
  std::vector<BoundModel> bounds;  // of one that lasts or waits
};

struct Model {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string phase;  // "": no operator has read the job yet
  std::string state;  // "Running, stage encode, needs a person"
  std::string stage;
  std::string queue;
  std::string pool;
  bool has_ended = false;
  bool needs_person = false;
  bool has_many_runs = false;
  std::int64_t attempt = 0;
  std::optional<Time> created;
  std::optional<Time> started;
  std::optional<Time> ended;
  std::string reason;  // one word: why it waits, or has ended
  std::string link;    // where the manual says more of it; empty: it does not
  Text summary;        // one sentence: what and why; empty: it waits for nothing that is on record
  std::vector<Fact> facts;
  AdviceModel advice;
  RunsModel runs;
  std::vector<StageModel> stages;
  std::vector<AttemptModel> attempts;  // oldest first
};

Model model_of(const ExplainFacts& facts, Time now);

// Times are RFC 3339, sentences are {"text", "parts"}.
Json to_json(const Model& model, Time now);

// The page, by the clock of `now`, which may be later than that of the model.
std::vector<std::string> draw(const Model& model, Time now, const Page& page);

}  // namespace holdfast::plugin
